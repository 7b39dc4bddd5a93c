// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func TestAnswers(t *testing.T) {
	srv := redisserver.Start(t)
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			st := routed(client(t, srv.Addr(), protocol))
			for _, test := range []struct {
				args []any
				want wire.Reply
			}{
				{[]any{"SET", "k", []byte("v\x00\r\n")}, wire.Reply{Value: "OK"}},
				{[]any{"GET", "k"}, wire.Reply{Value: "v\x00\r\n"}},
				{[]any{"GET", "none"}, wire.Reply{}},
				{[]any{"SET", "k", "w", "NX"}, wire.Reply{}},
				{[]any{"INCRBY", "n", 41}, wire.Reply{Value: int64(41)}},
				{[]any{"INCRBY", "n", int64(1)}, wire.Reply{Value: int64(42)}},
				{[]any{"MGET", "n", "none"}, wire.Reply{Value: []any{"42", nil}}},
				{[]any{"EVAL", "return {1,'two',{redis.call('GET','none'),{}}}", 0},
					wire.Reply{Value: []any{int64(1), "two", []any{nil, []any{}}}}},
				{[]any{"EVAL", "return {redis.error_reply('MY word'),1}", 0}, wire.Reply{Value: []any{"MY word", int64(1)}}},
				{[]any{"LPUSH", "n", 1}, wire.Reply{Refused: "WRONGTYPE Operation against a key holding the wrong kind of value"}},
				{[]any{"EVALSHA", strings.Repeat("0", 40), 0}, wire.Reply{Refused: "NOSCRIPT No matching script. Please use EVAL."}},
				{[]any{"EVAL", "return redis.error_reply('MY word')", 0}, wire.Reply{Refused: "MY word"}},
				{[]any{"SELECT", "x"}, wire.Reply{Refused: "ERR value is not an integer or out of range"}},
				{[]any{"DEL", "n"}, wire.Reply{Value: int64(1)}},
			} {
				if got := st.Do(within(t, 5*time.Second), request(test.args...))[0]; !reflect.DeepEqual(got, test.want) {
					t.Errorf("%v: got %#v", test.args, got)
				}
			}
		})
	}
}

func TestAnswersOfScriptsThatSpeakRESP3(t *testing.T) {
	srv := redisserver.Start(t)
	store := routed(client(t, srv.Addr()))
	script := "redis.setresp(3); return {true, false, {double=2.5}, {map={a=1}}, {set={b=true}}}"
	want := []any{int64(1), nil, "2.5", []any{"a", int64(1)}, []any{"b"}}
	if got := store.Do(within(t, 5*time.Second), request("EVAL", script, 0))[0]; !reflect.DeepEqual(got.Value, want) {
		t.Errorf("got %#v", got)
	}
}

func TestBatchIsAnsweredEachForItself(t *testing.T) {
	srv := redisserver.Start(t)
	st := routed(client(t, srv.Addr()))
	for name, ctx := range map[string]context.Context{"deadline": within(t, 5*time.Second), "none": context.Background()} {
		t.Run(name, func(t *testing.T) {
			got := st.Do(ctx, []wire.Request{
				{Args: []any{"LPUSH", "list", "a"}},
				{Args: []any{"GET", "list"}},
				{Args: []any{"GET", "none"}},
				{Args: []any{"NOSUCH"}},
				{Args: []any{"DEL", "list"}},
			})
			if len(got) != 5 || got[0].Value != int64(1) || !strings.HasPrefix(got[1].Refused, "WRONGTYPE ") || got[2] != (wire.Reply{}) ||
				!strings.HasPrefix(got[3].Refused, "ERR unknown command") || got[4].Value != int64(1) {
				t.Fatalf("got %+v", got)
			}
		})
	}
	if got := st.Do(context.Background(), nil); len(got) != 0 {
		t.Fatalf("no requests: %+v", got)
	}
}

func TestBadArguments(t *testing.T) {
	srv := redisserver.Start(t)
	st := routed(client(t, srv.Addr()))
	for name, args := range map[string][]any{"none": nil, "of another type": {"SET", "k", 1.5}} {
		for _, reqs := range [][]wire.Request{{{Args: args}}, {{Args: []any{"SET", "k", "v"}}, {Args: args}}} {
			for _, r := range st.Do(within(t, 5*time.Second), reqs) {
				if r.Err == nil || !r.Unsent {
					t.Errorf("%s: got %+v", name, r)
				}
			}
		}
	}
	if n := srv.CommandStats()["set"]; n != 0 {
		t.Errorf("%d SET were sent", n)
	}
}

// Commands that are sent together arrive together, on one connection.
func TestOneFlush(t *testing.T) {
	srv := redisserver.Start(t)
	p := fault.Start(t, srv.Addr())
	st := routed(client(t, p.Addr()))
	reqs := make([]wire.Request, 100)
	for i := range reqs {
		reqs[i].Args = []any{"INCR", "n"}
	}
	p.Record()
	for i, r := range st.Do(within(t, 5*time.Second), reqs) {
		if r.Value != int64(i+1) {
			t.Fatalf("%d: got %+v", i, r)
		}
	}
	if sent := p.Sent("INCR"); len(sent) != 1 || strings.Count(sent[0], "INCR") != 100 {
		t.Errorf("%d writes", len(sent))
	}
}

func TestReplicas(t *testing.T) {
	srv := redisserver.Start(t, "--repl-diskless-sync-delay", "0")
	replica := redisserver.Start(t, "--replicaof", "127.0.0.1 "+srv.Addr()[len("127.0.0.1:"):])
	eventually(t, "the replica is there", func() bool {
		v, _ := replica.Do("INFO", "replication")
		text, _ := v.(string)
		return strings.Contains(text, "master_link_status:up")
	})
	for name, ctx := range map[string]context.Context{"deadline": within(t, time.Minute), "none": context.Background()} {
		t.Run(name, func(t *testing.T) {
			rdb := client(t, srv.Addr(), unasked, func(o *valkey.ClientOption) { o.ConnWriteTimeout = 2 * time.Second })
			st := routed(rdb)
			got := st.Do(ctx, []wire.Request{
				{Args: []any{"SET", "a", 1}, Replicas: 1, ReplicasTimeout: 5000},
				{Args: []any{"LPUSH", "a", 1}, Replicas: 1, ReplicasTimeout: 5000},
				{Args: []any{"SET", "b", 1}},
			})
			if got[0].Value != "OK" || got[0].Replicas != 1 || got[1].Refused == "" || got[1].Replicas != 0 || got[2].Replicas != 0 {
				t.Fatalf("got %+v", got)
			}
			replica.Stop() // the answer comes later than the client's own time-out, and says that none confirmed
			defer replica.Continue()
			done := make(chan wire.Reply, 1)
			go func() {
				done <- st.Do(ctx, []wire.Request{{Args: []any{"SET", "a", 2}, Replicas: 1, ReplicasTimeout: 3500}})[0]
			}()
			eventually(t, "a WAIT is under way", func() bool { return strings.Contains(do(t, srv, "CLIENT", "LIST").(string), "cmd=wait") })
			if err := rdb.Do(within(t, 5*time.Second), rdb.B().Get().Key("b").Build()).Error(); err != nil {
				t.Error(err)
			}
			if len(done) > 0 {
				t.Error("a command of the user waited behind the replicas")
			}
			if got := <-done; got.Value != "OK" || got.Replicas != 0 {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

// The WAIT is on the connection of its write: a replica that has nothing of that write confirms
// nothing.
func TestReplicasOnTheConnectionOfTheWrite(t *testing.T) {
	srv := redisserver.Start(t)
	p := fault.Start(t, srv.Addr())
	st := routed(client(t, p.Addr()))
	p.Record()
	for range 3 {
		r := st.Do(within(t, 5*time.Second), []wire.Request{{Args: []any{"SET", "a", 1}, Replicas: 1, ReplicasTimeout: 1}})[0]
		if r.Value != "OK" || r.Replicas != 0 {
			t.Fatalf("got %+v", r)
		}
	}
	if sent := p.Sent("WAIT"); len(sent) != 3 || !strings.Contains(sent[0], "SET") {
		t.Errorf("sent %q", sent)
	}
}

func TestNode(t *testing.T) {
	srv := redisserver.Start(t)
	st := routed(client(t, srv.Addr()))
	top, err := st.Describe(within(t, 5*time.Second))
	if err != nil || len(top.Nodes) != 1 || top.Cluster || !top.ShardedPubSub {
		t.Fatalf("got %+v, %v", top, err)
	}
	node := top.Nodes[0]
	if node.ID != srv.Addr() || node.Role != "master" || node.Version == "" {
		t.Fatalf("got %+v", node)
	}
	got := st.Do(context.Background(), []wire.Request{{Args: []any{"PING"}, Node: node.ID}, {Args: []any{"PING"}}})
	if got[0].Value != "PONG" || got[1].Value != "PONG" {
		t.Fatalf("got %+v", got)
	}
	got = st.Do(context.Background(), []wire.Request{{Args: []any{"PING"}, Node: "elsewhere"}})
	if got[0].Err == nil || !got[0].Unsent {
		t.Fatalf("got %+v", got)
	}
}

func TestDescribeWithoutPermission(t *testing.T) {
	srv := redisserver.Start(t)
	do(t, srv, "ACL", "SETUSER", "few", "on", ">pw", "~*", "-@all", "+evalsha", "+hello")
	store := routed(client(t, srv.Addr(), func(o *valkey.ClientOption) {
		o.Username, o.Password, o.DisableCache, o.ForceSingleClient = "few", "pw", true, true
	}))
	top, err := store.Describe(within(t, 5*time.Second))
	if err != nil || len(top.Nodes) != 1 || top.Nodes[0].Version != "" || top.Nodes[0].Role != "" || top.ShardedPubSub {
		t.Fatalf("got %+v, %v", top, err)
	}
	srv.Kill()
	if _, err := store.Describe(within(t, 300*time.Millisecond)); err == nil {
		t.Fatal("described a dead server")
	}
}

// Trap 15: client-side caching would make the server tell of every change of a key.
func TestNothingIsTracked(t *testing.T) {
	srv := redisserver.Start(t)
	store := routed(client(t, srv.Addr()))
	for range 20 {
		if r := store.Do(within(t, 5*time.Second), request("GET", "k"))[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
		do(t, srv, "SET", "k", "v")
	}
	if info := do(t, srv, "INFO", "stats").(string); !strings.Contains(info, "tracking_total_keys:0") {
		t.Error("keys are tracked")
	}
	if n := srv.CommandStats()["client|caching"]; n != 0 {
		t.Errorf("%d CLIENT CACHING", n)
	}
}
