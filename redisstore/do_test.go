package redisstore_test

import (
	"context"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func TestAnswers(t *testing.T) {
	srv := redisserver.Start(t)
	for name, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(name, func(t *testing.T) {
			st := routed(client(t, srv, func(o *redis.Options) { o.Protocol = protocol }))
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
				{[]any{"LPUSH", "n", 1}, wire.Reply{Refused: "WRONGTYPE Operation against a key holding the wrong kind of value"}},
				{[]any{"EVALSHA", strings.Repeat("0", 40), 0}, wire.Reply{Refused: "NOSCRIPT No matching script."}},
				{[]any{"EVAL", "return redis.error_reply('MY word')", 0}, wire.Reply{Refused: "MY word"}},
				{[]any{"DEL", "n"}, wire.Reply{Value: int64(1)}},
			} {
				ctx := within(t, 5*time.Second)
				got := st.Do(ctx, request(test.args...))[0]
				got.Refused = strings.TrimSuffix(got.Refused, " Please use EVAL.") // some say no more
				if !reflect.DeepEqual(got, test.want) {
					t.Errorf("%v: got %#v", test.args, got)
				}
			}
		})
	}
}

func TestBatchIsAnsweredEachForItself(t *testing.T) {
	srv := redisserver.Start(t)
	st := routed(client(t, srv))
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

func TestReplicas(t *testing.T) {
	srv := redisserver.Start(t, "--repl-diskless-sync-delay", "0")
	replica := redisserver.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(srv.Port()))
	eventually(t, "the replica is there", func() bool {
		v, _ := replica.Do("INFO", "replication")
		text, _ := v.(string)
		return strings.Contains(text, "master_link_status:up")
	})
	for name, ctx := range map[string]context.Context{"deadline": within(t, time.Minute), "none": context.Background()} {
		t.Run(name, func(t *testing.T) {
			st := routed(client(t, srv, func(o *redis.Options) { o.ReadTimeout = 2 * time.Second }))
			got := st.Do(ctx, []wire.Request{
				{Args: []any{"SET", "a", 1}, Replicas: 1, ReplicasTimeout: 5000},
				{Args: []any{"LPUSH", "a", 1}, Replicas: 1, ReplicasTimeout: 5000},
				{Args: []any{"SET", "b", 1}},
			})
			if got[0].Value != "OK" || got[0].Replicas != 1 || got[1].Refused == "" || got[1].Replicas != 0 || got[2].Replicas != 0 {
				t.Fatalf("got %+v", got)
			}
			replica.Stop() // the answer comes later than the client's ReadTimeout, and says that none confirmed
			defer replica.Continue()
			got = st.Do(ctx, []wire.Request{{Args: []any{"SET", "a", 2}, Replicas: 1, ReplicasTimeout: 2500}})
			if got[0].Value != "OK" || got[0].Replicas != 0 {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

func TestNode(t *testing.T) {
	srv := redisserver.Start(t)
	st := routed(client(t, srv))
	top, err := st.Describe(within(t, 5*time.Second))
	if err != nil || len(top.Nodes) != 1 || top.Cluster || top.ShardedPubSub != shards(t, srv) {
		t.Fatalf("got %+v, %v", top, err)
	}
	node := top.Nodes[0]
	if node.ID != srv.Addr() || node.Role != "master" || node.Version == "" {
		t.Fatalf("got %+v", node)
	}
	got := st.Do(context.Background(), []wire.Request{{Args: []any{"PING"}, Node: node.ID}})
	if got[0].Value != "PONG" {
		t.Fatalf("got %+v", got)
	}
	got = st.Do(context.Background(), []wire.Request{{Args: []any{"PING"}, Node: "elsewhere"}})
	if got[0].Err == nil || !got[0].Unsent {
		t.Fatalf("got %+v", got)
	}
}

func TestDescribeWithoutPermission(t *testing.T) {
	srv := redisserver.Start(t)
	if _, err := srv.Do("ACL", "SETUSER", "few", "on", ">pw", "~*", "-@all", "+evalsha"); err != nil {
		t.Fatal(err)
	}
	store := routed(client(t, srv, func(o *redis.Options) { o.Username, o.Password = "few", "pw" }))
	top, err := store.Describe(within(t, 5*time.Second))
	if err != nil || len(top.Nodes) != 1 || top.Nodes[0].Version != "" || top.Nodes[0].Role != "" || top.ShardedPubSub {
		t.Fatalf("got %+v, %v", top, err)
	}
	srv.Kill()
	if _, err := store.Describe(within(t, 300*time.Millisecond)); err == nil {
		t.Fatal("described a dead server")
	}
}

func TestClientIsLeftAsItWas(t *testing.T) {
	srv := redisserver.Start(t)
	hook := new(counter)
	for name, follows := range map[string]bool{"ContextTimeoutEnabled": true, "default": false} {
		t.Run(name, func(t *testing.T) {
			rdb := client(t, srv, func(o *redis.Options) { o.ContextTimeoutEnabled = follows })
			before := *rdb.Options()
			store := routed(rdb)
			rdb.AddHook(hook)
			hook.seen = 0
			if r := store.Do(within(t, 5*time.Second), request("PING"))[0]; r.Value != "PONG" {
				t.Fatal(r)
			}
			if seen := hook.seen > 0; seen != follows {
				t.Errorf("hooks were told: %v", seen)
			}
			after := *rdb.Options()
			if before.ReadTimeout != after.ReadTimeout || before.WriteTimeout != after.WriteTimeout || before.MaxRetries != after.MaxRetries ||
				before.ContextTimeoutEnabled != after.ContextTimeoutEnabled || before.Protocol != after.Protocol {
				t.Errorf("options changed from %+v to %+v", before, after)
			}
		})
	}
}

type counter struct{ seen int }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.seen++
		return next(ctx, cmd)
	}
}
func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
