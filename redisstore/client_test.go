package redisstore_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/adaptertest"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
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
