package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/adaptertest"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// go-redis tells by its own errors that nothing was written. A pool without a free connection is
// named.
func TestUnsent(t *testing.T) {
	srv := redisserver.Start(t)
	occupy := func(rdb *redis.Client) {
		conn := rdb.Conn()
		if err := conn.Ping(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	for name, test := range map[string]struct {
		change  func(*redis.Options)
		before  func(*redis.Client)
		patient bool // ctx lasts longer than what go-redis waits
		want    error
		pool    bool // the error names the pool
	}{
		"closed": {before: func(rdb *redis.Client) { _ = rdb.Close() }, patient: true, want: redis.ErrClosed},
		"no answer to the dialing": {change: func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
			o.DialTimeout, o.DialerRetries = time.Second, 1 // go-redis goes on dialing when nobody waits any more
		}, want: context.DeadlineExceeded},
		"refused by the host": {change: func(o *redis.Options) { o.Addr, o.DialerRetries = "127.0.0.1:1", 1 }},
		"pool, deadline": {change: func(o *redis.Options) {
			o.PoolSize = 1
		}, before: occupy, want: context.DeadlineExceeded, pool: true},
		"pool, timeout": {change: func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 10*time.Millisecond },
			before: occupy, patient: true, want: redis.ErrPoolTimeout, pool: true},
		"hooks that read the arguments": {change: func(o *redis.Options) {
			o.Addr, o.DialerRetries, o.ContextTimeoutEnabled = "127.0.0.1:1", 1, true
		},
			before: func(rdb *redis.Client) { rdb.AddHook(&reader{}) }, patient: true},
	} {
		for n := 1; n <= 2; n++ {
			opt := &redis.Options{Addr: srv.Addr()}
			if test.change != nil {
				test.change(opt)
			}
			rdb := redis.NewClient(opt)
			t.Cleanup(func() { _ = rdb.Close() })
			if test.before != nil {
				test.before(rdb)
			}
			ctx := adaptertest.Within(t, adaptertest.Patience)
			if !test.patient {
				ctx = adaptertest.Within(t, 300*time.Millisecond)
			}
			for _, r := range redisstore.New(rdb).Do(ctx, "", slices.Repeat([]store.Command{{"PING"}}, n)) {
				if r.Err == nil || !r.Unsent || test.want != nil && !errors.Is(r.Err, test.want) {
					t.Errorf("%s: got %+v", name, r)
				}
				full := new(store.PoolError)
				if errors.As(r.Err, &full) != test.pool || test.pool && full.Size != 1 {
					t.Errorf("%s: got %+v, the pool named: want %v", name, r, test.pool)
				}
			}
		}
	}
}

// The store changes no option of the client. Hooks are told of requests if the client lets contexts
// bound them.
func TestClientIsLeftAsItWas(t *testing.T) {
	srv := redisserver.Start(t)
	for name, follows := range map[string]bool{"ContextTimeoutEnabled": true, "default": false} {
		t.Run(name, func(t *testing.T) {
			rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), ContextTimeoutEnabled: follows})
			defer rdb.Close()
			before, st, hook := *rdb.Options(), redisstore.New(rdb), &reader{}
			rdb.AddHook(hook)
			if r := st.Do(adaptertest.Within(t, adaptertest.Patience), "",
				[]store.Command{{"PING"}})[0]; r.Value != "PONG" {
				t.Fatal(r)
			}
			if told := hook.told > 0; told != follows {
				t.Errorf("hooks were told: %v", told)
			}
			after := *rdb.Options()
			if before.ReadTimeout != after.ReadTimeout || before.WriteTimeout != after.WriteTimeout ||
				before.MaxRetries != after.MaxRetries ||
				before.ContextTimeoutEnabled != after.ContextTimeoutEnabled || before.Protocol != after.Protocol {
				t.Errorf("options changed from %+v to %+v", before, after)
			}
		})
	}
}

// A reader is a hook that reads the arguments of each command, as one for tracing does.
type reader struct{ told int }

func (r *reader) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *reader) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.told++
		_ = cmd.Args()
		return next(ctx, cmd)
	}
}

func (r *reader) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			_ = cmd.Args()
		}
		return next(ctx, cmds)
	}
}

// A cuttingDialer is a way of dialing whose connections break when an INCR was written, before its
// answer comes.
type cuttingDialer struct {
	cuts atomic.Int32
}

func (s *cuttingDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cuttingConn{Conn: conn, s: s}, nil
}

type cuttingConn struct {
	net.Conn
	s   *cuttingDialer
	cut atomic.Bool
}

func (c *cuttingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(bytes.ToLower(b), []byte("incr\r\n")) {
		c.s.cuts.Add(1)
		c.cut.Store(true)
	}
	return n, err
}

func (c *cuttingConn) Read(b []byte) (int, error) {
	if c.cut.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

// Trap 36: go-redis sends again what may have been carried out, by MaxRetries and, on a cluster, by
// MaxRedirects too. A command that goes through the store arrives once, through every kind of
// client.
func TestSentOnceByEachKind(t *testing.T) {
	adaptertest.EachKind(t, func(t *testing.T, c adaptertest.Client, masters func() []*redisserver.Server) {
		dialer, opt := new(cuttingDialer), options(c)
		opt.Dialer = dialer.dial
		rdb := redis.NewUniversalClient(opt)
		defer rdb.Close()
		calls := func() (n int) {
			for _, srv := range masters() {
				n += srv.CommandStats()["incr"]
			}
			return n
		}
		ctx, st := adaptertest.Within(t, adaptertest.Patience), wire.Route(redisstore.New(rdb))
		if r := st.Do(ctx, []wire.Request{{Key: "n", Args: []any{"GET", "n"}}})[0]; r.Err != nil {
			t.Fatal(r)
		}
		for _, n := range []int{1, 3} {
			before, cuts := calls(), dialer.cuts.Load()
			for _, r := range st.Do(ctx, slices.Repeat([]wire.Request{{Key: "n", Args: []any{"INCR", "n"}}}, n)) {
				if r.Err == nil || r.Unsent {
					t.Errorf("got %+v", r)
				}
			}
			adaptertest.Eventually(t, "it arrives", func() bool { return calls()-before >= n })
			if calls()-before > n || dialer.cuts.Load() != cuts+1 {
				t.Errorf("%d commands arrived %d times, written %d times", n, calls()-before, dialer.cuts.Load()-cuts)
			}
		}
		before := calls()
		if err := rdb.Incr(t.Context(), "n").Err(); err == nil {
			t.Error("the client itself had an answer, so this test shows nothing")
		}
		adaptertest.Eventually(t, "the client itself repeats, or this test shows nothing", func() bool {
			return calls()-before >= 2
		})
	})
}

// The nodes of a cluster announce loopback addresses, and its user names another host. go-redis
// reaches all nodes at that host, and so do locks.
func TestClusterAnnouncesLoopback(t *testing.T) {
	adaptertest.NeedProof(t)
	_, port, _ := net.SplitHostPort(redisserver.StartTwoMasters(t)[0].Addr())
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"192.0.2.1:" + port},
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
		},
	})
	defer rdb.Close()
	client, err := holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := adaptertest.Within(t, adaptertest.Patience)
	for name := range strings.FieldsSeq("a b c d e f") {
		if lease, err := client.Mutex(name).Lock(ctx); err != nil || lease.Release() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type ownClient struct{ *redis.Client }

func TestNewRefuses(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	defer ring.Close()
	const url = "Redis://u:geheim@host:6379"
	single, cluster := redis.NewClient(&redis.Options{Addr: url}),
		redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"a:1", url}})
	defer single.Close()
	defer cluster.Close()
	for name, test := range map[string]struct {
		rdb  redis.UniversalClient
		want string
	}{
		"nil":              {nil, "the client is nil"},
		"nil client":       {(*redis.Client)(nil), "is nil, or not from redis.NewClient"},
		"empty client":     {&redis.Client{}, "is nil, or not from redis.NewClient"},
		"nil cluster":      {(*redis.ClusterClient)(nil), "is nil, or not from redis.NewClusterClient"},
		"empty cluster":    {&redis.ClusterClient{}, "is nil, or not from redis.NewClusterClient"},
		"ring":             {ring, "a *redis.Ring cannot hold locks"},
		"of another type":  {ownClient{}, "a redisstore_test.ownClient is neither"},
		"URL as address":   {single, "the address of the client is a URL"},
		"URL of a cluster": {cluster, "the address of the client is a URL"},
		"nil of that type": {(*ownClient)(nil), "a *redisstore_test.ownClient is neither"},
	} {
		t.Run(name, func(t *testing.T) {
			st, ctx := redisstore.New(test.rdb), context.Background()
			replies := st.Do(ctx, "", []store.Command{{"PING"}, {"PING"}})
			if len(replies) != 2 || replies[1].Err == nil || !replies[1].Unsent {
				t.Fatalf("got %+v", replies)
			}
			_, err := st.Listen(ctx, "", false, nil)
			_, err2 := st.Nodes(ctx)
			for _, err := range []error{replies[0].Err, err, err2, st.Refresh(ctx, "")} {
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "geheim") {
					t.Errorf("got %v", err)
				}
			}
			var bad *holdfast.ArgumentError
			if _, err := holdfast.New(st, nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("New: %v", err)
			}
			if _, err := holdfast.NewQuorum([]store.Store{st, st, st}, nil); !errors.As(err, &bad) ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("NewQuorum: %v", err)
			}
		})
	}
}
