package redisstore_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/store"
)

// hangUp serves connections that refuse the greeting and end when a SET comes. It counts those.
func hangUp(t *testing.T) (addr string, sets *atomic.Int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	sets = new(atomic.Int32)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					switch strings.ToUpper(lines.Text()) {
					case "HELLO":
						_, _ = conn.Write([]byte("-ERR unknown command\r\n"))
					case "SET":
						sets.Add(1)
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), sets
}

func TestSentOnce(t *testing.T) {
	for name, follows := range map[string]bool{"through a copy": false, "through the client": true} {
		for kind, n := range map[string]int{"one": 1, "several": 3} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				addr, sets := hangUp(t)
				rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, ContextTimeoutEnabled: follows, MinRetryBackoff: 1})
				defer rdb.Close()
				reqs := make([]wire.Request, n)
				for i := range reqs {
					reqs[i].Args = []any{"SET", "k", "v"}
				}
				for _, r := range routed(rdb).Do(within(t, 5*time.Second), reqs) {
					if r.Err == nil || r.Unsent || r.Refused != "" {
						t.Errorf("got %+v", r)
					}
				}
				if n := sets.Load(); n != 1 {
					t.Errorf("sent %d times", n)
				}
				if err := rdb.Set(context.Background(), "k", "v", 0).Err(); err == nil || sets.Load() < 3 {
					t.Errorf("the client itself does not repeat, so this test shows nothing: %v, %d", err, sets.Load())
				}
			})
		}
	}
}

func TestDeadlineBoundsTheAnswer(t *testing.T) {
	for name, change := range map[string]func(*redis.Options){
		"default":               func(*redis.Options) {},
		"ContextTimeoutEnabled": func(o *redis.Options) { o.ContextTimeoutEnabled = true },
		"no timeout":            func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -1, -1 },
		"no deadlines":          func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = -2, -2, true },
	} {
		for kind, reqs := range map[string][]wire.Request{"one": request("SET", "k", "v"), "several": append(request("SET", "k", "v"), request("SET", "k", "v")...)} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				srv := redisserver.Start(t)
				st := routed(client(t, srv, func(o *redis.Options) {
					o.ReadTimeout, o.WriteTimeout = 30*time.Second, 30*time.Second
					change(o)
				}))
				if r := st.Do(within(t, patience), request("PING"))[0]; r.Err != nil {
					t.Fatal(r.Err)
				}
				srv.Stop()
				const limit = 3 * time.Second                // longer than the machine stands still between looking at it and writing
				for _, unsent := range []bool{false, true} { // the connection at hand first, then a new one that is not greeted
					began := time.Now()
					replies := st.Do(within(t, limit), reqs)
					if took := time.Since(began); took < limit-10*time.Millisecond || took > patience {
						t.Errorf("took %v", took)
					}
					for _, r := range replies {
						if r.Err == nil || r.Unsent != unsent {
							t.Errorf("got %+v, want unsent %v", r, unsent)
						}
					}
				}
			})
		}
	}
}

func TestUnsent(t *testing.T) {
	srv := redisserver.Start(t)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for name, test := range map[string]struct {
		ctx    context.Context
		change func(*redis.Options)
		before func(*redis.Client)
		want   error
		pool   bool // the error names the pool
	}{
		"cancelled": {ctx: over, want: context.Canceled},
		"too late":  {ctx: within(t, -time.Second), want: context.DeadlineExceeded},
		"closed":    {ctx: within(t, time.Minute), before: func(rdb *redis.Client) { rdb.Close() }, want: redis.ErrClosed},
		"no answer to the dialing": {change: func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
			o.DialTimeout, o.DialerRetries = time.Second, 1 // go-redis goes on dialing when nobody waits any more
		}, want: context.DeadlineExceeded},
		"refused by the host": {change: func(o *redis.Options) { o.Addr, o.DialerRetries = "127.0.0.1:1", 1 }},
		"pool, deadline":      {change: func(o *redis.Options) { o.PoolSize = 1 }, before: occupy(t), want: context.DeadlineExceeded, pool: true},
		"pool, timeout": {ctx: within(t, time.Minute), change: func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 10*time.Millisecond }, before: occupy(t),
			want: redis.ErrPoolTimeout, pool: true},
	} {
		for kind, reqs := range map[string][]wire.Request{"one": request("PING"), "several": append(request("PING"), request("PING")...)} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				if test.change == nil {
					test.change = func(*redis.Options) {}
				}
				rdb := client(t, srv, test.change)
				if test.before != nil {
					test.before(rdb)
				}
				ctx := test.ctx
				if ctx == nil {
					ctx = within(t, 300*time.Millisecond)
				}
				for _, r := range routed(rdb).Do(ctx, reqs) {
					if r.Err == nil || !r.Unsent || test.want != nil && !errors.Is(r.Err, test.want) {
						t.Errorf("got %+v", r)
					}
					full := new(store.PoolError)
					if errors.As(r.Err, &full) != test.pool || test.pool && full.Size != 1 {
						t.Errorf("got %+v, the pool named: want %v", r, test.pool)
					}
				}
			})
		}
	}
	t.Run("hooks that read the arguments", func(t *testing.T) {
		rdb := client(t, srv, func(o *redis.Options) { o.Addr, o.DialerRetries, o.ContextTimeoutEnabled = "127.0.0.1:1", 1, true })
		rdb.AddHook(new(reader))
		if r := routed(rdb).Do(within(t, patience), request("PING"))[0]; r.Err == nil || !r.Unsent {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("wrong password", func(t *testing.T) {
		rdb := client(t, srv, func(o *redis.Options) { o.Username, o.Password = "nobody", "pw" })
		r := routed(rdb).Do(within(t, patience), request("PING"))[0]
		if !strings.HasPrefix(r.Refused, "WRONGPASS ") || r.Err != nil {
			t.Errorf("got %+v", r)
		}
	})
}

// occupy takes the only connection of the pool.
func occupy(t *testing.T) func(*redis.Client) {
	return func(rdb *redis.Client) {
		conn := rdb.Conn()
		if err := conn.Ping(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
}

type reader struct{ counter }

func (reader) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_ = cmd.Args()
		return next(ctx, cmd)
	}
}

func TestRestartedServer(t *testing.T) {
	srv := redisserver.Start(t)
	store := routed(client(t, srv))
	for range 3 {
		if r := store.Do(within(t, 5*time.Second), request("PING"))[0]; r.Value != "PONG" {
			t.Fatal(r)
		}
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}
