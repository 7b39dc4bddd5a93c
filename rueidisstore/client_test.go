package rueidisstore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/adaptertest"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/rueidisstore"
	"github.com/holdfast-go/holdfast/store"
)

// connect makes a client of a server, which the end of the test closes.
func connect(t *testing.T, opt rueidis.ClientOption) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(opt)
	fatal.If(t, err)
	t.Cleanup(client.Close)
	return client
}

// do has a server carry out a command.
func do(t *testing.T, srv *redisserver.Server, args ...any) any {
	t.Helper()
	v, err := srv.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

type ownClient struct{ rueidis.Client }

func TestNewRefusesNil(t *testing.T) {
	for name, client := range map[string]rueidis.Client{"nil": nil, "nil of some type": (*ownClient)(nil)} {
		st := rueidisstore.New(client)
		replies := st.Do(t.Context(), "", []store.Command{{"PING"}, {"PING"}})
		if len(replies) != 2 || !replies[1].Unsent {
			t.Fatalf("%s: got %+v", name, replies)
		}
		_, err := holdfast.New(st, nil)
		for _, err := range []error{replies[0].Err, err} {
			if err == nil || !strings.Contains(err.Error(), "the client is nil") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}

func TestUnsent(t *testing.T) {
	srv := redisserver.Start(t)
	opt := rueidis.ClientOption{InitAddress: []string{srv.Addr()}, BlockingPoolSize: 1}
	t.Run("closed", func(t *testing.T) {
		client := connect(t, opt)
		client.Close()
		for n := 1; n <= 2; n++ {
			commands := slices.Repeat([]store.Command{{"PING"}}, n)
			for _, r := range rueidisstore.New(client).Do(adaptertest.Within(t, adaptertest.Patience), "", commands) {
				if !r.Unsent || !errors.Is(r.Err, rueidis.ErrClosing) {
					t.Errorf("got %+v", r)
				}
			}
		}
	})
	t.Run("bad arguments", func(t *testing.T) {
		st, good := rueidisstore.New(connect(t, opt)), store.Command{"SET", "k", "v"}
		for _, commands := range [][]store.Command{{{}}, {good, {}}, {{"SET", "k", 1.5}}, {good, {"SET", "k", 1.5}}} {
			for _, r := range st.Do(adaptertest.Within(t, adaptertest.Patience), "", commands) {
				if r.Err == nil || !r.Unsent {
					t.Errorf("%v: got %+v", commands, r)
				}
			}
		}
		if n := srv.CommandStats()["set"]; n != 0 {
			t.Errorf("%d SET were sent", n)
		}
	})
	t.Run("no connection is free", func(t *testing.T) {
		client := connect(t, opt)
		dedicated, release := client.Dedicate()
		fatal.If(t, dedicated.Do(t.Context(), dedicated.B().Ping().Build()).Error())
		r := rueidisstore.New(client).Do(adaptertest.Within(t, 50*time.Millisecond), "",
			[]store.Command{{"INCR", "n"}})[0]
		if !errors.Is(r.Err, context.DeadlineExceeded) { // rueidis does not tell it from an answer that did not come
			t.Errorf("got %+v", r)
		}
		release()
		if v := do(t, srv, "GET", "n"); v != nil {
			t.Errorf("carried out: %v", v)
		}
	})
}

// A command of the client's owner does not wait behind one of the store that the server is slow to
// answer.
func TestClientIsNotHeldUp(t *testing.T) {
	srv := redisserver.Start(t)
	client, ended := connect(t, rueidis.ClientOption{InitAddress: []string{srv.Addr()}}), make(chan store.Reply, 1)
	ctx := adaptertest.Within(t, adaptertest.Patience)
	go func() { ended <- rueidisstore.New(client).Do(ctx, "", []store.Command{{"BLPOP", "list", 0}})[0] }()
	adaptertest.Eventually(t, "the server waits", func() bool {
		return strings.Contains(do(t, srv, "CLIENT", "LIST").(string), "cmd=blpop")
	})
	if err := client.Do(ctx, client.B().Get().Key("k").Build()).Error(); !rueidis.IsRedisNil(err) {
		t.Errorf("got %v", err)
	}
	do(t, srv, "LPUSH", "list", "x")
	if r := <-ended; r.Err != nil {
		t.Errorf("got %+v", r)
	}
}

// Trap 15: client-side caching would make the server tell of every change of a key.
func TestNothingIsTracked(t *testing.T) {
	srv := redisserver.Start(t)
	st := rueidisstore.New(connect(t, rueidis.ClientOption{InitAddress: []string{srv.Addr()}}))
	for range 20 {
		if r := st.Do(adaptertest.Within(t, adaptertest.Patience), "", []store.Command{{"GET", "k"}})[0]; r.Err != nil {
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

// A closed client has no connections. The one that it gives instead has the error of the last
// attempt to connect, for ever.
func TestRenewOfAClosedClientEnds(t *testing.T) {
	adaptertest.NeedProof(t)
	srv := redisserver.Start(t)
	client := connect(t, rueidis.ClientOption{InitAddress: []string{srv.Addr()}})
	st := rueidisstore.New(client)
	srv.Kill()
	st.Renew(srv.Addr()) // which leaves such an error
	client.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); st.Renew(srv.Addr()) }()
	select {
	case <-ended:
	case <-adaptertest.Within(t, adaptertest.Patience).Done():
		t.Error("the renewal goes on")
	}
}

// A client that may not ask who serves what takes a node for a server that is alone. The error of
// the first redirect names the permission.
func TestClusterWithoutSlotsPermission(t *testing.T) {
	adaptertest.NeedProof(t)
	rig := redisserver.StartCluster(t)
	for _, srv := range rig.Servers() {
		do(t, srv, "ACL", "SETUSER", "few", "reset", "on", ">pw", "~*", "&*", "+@all", "-cluster|slots",
			"-cluster|shards")
	}
	opt := rueidis.ClientOption{InitAddress: rig.Addrs()[:1], Username: "few", Password: "pw", DisableCache: true}
	client, err := holdfast.New(rueidisstore.New(connect(t, opt)), nil)
	fatal.If(t, err)
	t.Cleanup(func() { _ = client.Close() })
	adaptertest.Eventually(t, "an answer", func() bool {
		_, err = client.Mutex("{a}").TryLock(t.Context()) // at the third node
		return err == nil || strings.Contains(err.Error(), "+cluster|slots") || !errors.Is(err, holdfast.ErrUnavailable)
	})
	var failure *holdfast.StoreError
	if !errors.As(err, &failure) || failure.MayHaveApplied || !strings.Contains(err.Error(), "+cluster|slots") {
		t.Errorf("got %v", err)
	}
}
