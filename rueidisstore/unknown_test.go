package rueidisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Traps 12 and 36: what has no answer is not sent again.
func TestSentOnce(t *testing.T) {
	for name, change := range map[string]func(*rueidis.ClientOption){
		"default": func(*rueidis.ClientOption) {}, "RESP2": protocols["RESP2"],
		"no pipelining":   func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
		"all pipelined":   func(o *rueidis.ClientOption) { o.AlwaysPipelining = true },
		"short lifetimes": func(o *rueidis.ClientOption) { o.ConnLifetime = 20 * time.Millisecond },
	} {
		for kind, n := range map[string]int{"one": 1, "several": 3} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				srv := redisserver.Start(t)
				p := fault.Start(t, srv.Addr())
				rdb := client(t, p.Addr(), change)
				reqs := make([]wire.Request, n)
				for i := range reqs {
					reqs[i].Args = []any{"INCR", "n"}
				}
				lost := p.DropAnswer("INCR")
				for _, r := range routed(rdb).Do(within(t, 5*time.Second), reqs) {
					if r.Err == nil || r.Unsent || r.Refused != "" {
						t.Errorf("got %+v", r)
					}
				}
				<-lost
				if v := do(t, srv, "GET", "n"); v != fmt.Sprint(n) {
					t.Errorf("%v, want %d", v, n)
				}
				lost = p.DropAnswer("GET")
				if err := rdb.Do(within(t, 5*time.Second), rdb.B().Get().Key("n").Build()).Error(); err != nil {
					t.Errorf("the client repeats nothing, so this test shows nothing: %v", err)
				}
				<-lost
			})
		}
	}
}

// Each of many requests is carried out once at most while connections are cut all the time, and
// exactly once if it was answered.
func TestSentOnceWhileConnectionsBreak(t *testing.T) {
	for name, change := range map[string]func(*rueidis.ClientOption){
		"default":         func(*rueidis.ClientOption) {},
		"short lifetimes": func(o *rueidis.ClientOption) { o.ConnLifetime = 5 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			srv := redisserver.Start(t)
			p := fault.Start(t, srv.Addr())
			st := routed(client(t, p.Addr(), change))
			const carriers, rounds, batch = 8, 40, 4
			replies := make([][]wire.Reply, carriers*rounds)
			var all sync.WaitGroup
			for carrier := range carriers {
				all.Go(func() {
					for round := range rounds {
						id := carrier*rounds + round
						reqs := make([]wire.Request, 1+id%batch)
						for i := range reqs {
							reqs[i].Args = []any{"INCR", fmt.Sprintf("n%d-%d", id, i)}
						}
						if id%16 == 7 {
							p.Cut()
						}
						replies[id] = st.Do(within(t, 5*time.Second), reqs)
					}
				})
			}
			all.Wait()
			unknown, sent := 0, 0
			for id := range replies {
				for i, r := range replies[id] {
					v := do(t, srv, "GET", fmt.Sprintf("n%d-%d", id, i))
					switch {
					case v != nil && v != "1":
						t.Errorf("carried out %v times: %+v", v, r)
					case r.Err == nil && (v == nil || r.Value != int64(1)), r.Unsent && v != nil:
						t.Errorf("got %+v, at the server %v", r, v)
					}
					if r.Err != nil && !r.Unsent {
						unknown++
					}
					sent++
				}
			}
			t.Logf("%d of %d unknown", unknown, sent)
			if unknown == 0 {
				t.Error("nothing broke, so this test shows nothing")
			}
		})
	}
}

// unasked makes a client send no pings of its own: one without an answer costs the connection, and
// that the answers under way.
func unasked(o *rueidis.ClientOption) { o.Dialer.KeepAlive = time.Hour }

func TestDeadlineBoundsTheAnswer(t *testing.T) {
	for name, change := range map[string]func(*rueidis.ClientOption){
		"default": func(*rueidis.ClientOption) {}, "RESP2": protocols["RESP2"],
		"no pipelining":    func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
		"all pipelined":    func(o *rueidis.ClientOption) { o.AlwaysPipelining = true },
		"shorter time-out": func(o *rueidis.ClientOption) { o.ConnWriteTimeout = 2 * time.Second }, // the greeting has no more, too
	} {
		for kind, reqs := range map[string][]wire.Request{"one": request("SET", "k", "v"), "several": append(request("SET", "k", "v"), request("SET", "k", "v")...)} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				srv := redisserver.Start(t)
				st := routed(client(t, srv.Addr(), change, unasked))
				if r := st.Do(within(t, 5*time.Second), request("PING"))[0]; r.Err != nil {
					t.Fatal(r.Err)
				}
				srv.Stop()
				limit := time.Second // longer than the machine stands still between looking at it and writing
				if name == "shorter time-out" {
					limit = 3 * time.Second
				}
				for _, greeted := range []bool{true, false} { // the connection at hand first, then a new one
					began := time.Now()
					replies := st.Do(within(t, limit), reqs)
					if took := time.Since(began); greeted && took < limit-10*time.Millisecond || measured() && took > 8*time.Second { // rueidis gives up after ten by itself
						t.Errorf("took %v", took)
					}
					for _, r := range replies {
						if r.Err == nil || r.Unsent {
							t.Errorf("got %+v", r)
						}
					}
				}
				srv.Continue()
			})
		}
	}
}

func TestUnsent(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for name, test := range map[string]struct {
		ctx    context.Context
		before func(*testing.T, *redisserver.Server, rueidis.Client)
		want   error
	}{
		"cancelled": {ctx: over, want: context.Canceled},
		"too late":  {ctx: within(t, -time.Second), want: context.DeadlineExceeded},
		"closed":    {before: func(_ *testing.T, _ *redisserver.Server, rdb rueidis.Client) { rdb.Close() }, want: rueidis.ErrClosing},
		"refused by the host": {before: func(t *testing.T, srv *redisserver.Server, rdb rueidis.Client) {
			srv.Kill()
			eventually(t, "the connection is known to be lost", func() bool {
				return routed(rdb).Do(within(t, 5*time.Second), request("PING"))[0].Unsent
			})
		}},
	} {
		for kind, reqs := range map[string][]wire.Request{"one": request("PING"), "several": append(request("PING"), request("PING")...)} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				srv := redisserver.Start(t)
				rdb := client(t, srv.Addr())
				if test.before != nil {
					test.before(t, srv, rdb)
				}
				ctx := test.ctx
				if ctx == nil {
					ctx = within(t, 5*time.Second)
				}
				for _, r := range routed(rdb).Do(ctx, reqs) {
					if r.Err == nil || !r.Unsent || test.want != nil && !errors.Is(r.Err, test.want) {
						t.Errorf("got %+v", r)
					}
				}
			})
		}
	}
	t.Run("no connection is free", func(t *testing.T) {
		srv := redisserver.Start(t)
		rdb := client(t, srv.Addr(), func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 })
		dedicated, release := rdb.Dedicate()
		if err := dedicated.Do(within(t, 5*time.Second), dedicated.B().Ping().Build()).Error(); err != nil {
			t.Fatal(err)
		}
		r := routed(rdb).Do(within(t, 50*time.Millisecond), request("INCR", "n"))[0]
		if !errors.Is(r.Err, context.DeadlineExceeded) { // rueidis does not tell it from an answer that did not come
			t.Errorf("got %+v", r)
		}
		release()
		if v := do(t, srv, "GET", "n"); v != nil {
			t.Errorf("carried out: %v", v)
		}
	})
	t.Run("wrong password", func(t *testing.T) {
		srv := redisserver.Start(t)
		do(t, srv, "ACL", "SETUSER", "some", "on", ">pw", "~*", "+@all")
		rdb := client(t, srv.Addr(), func(o *rueidis.ClientOption) { o.Username, o.Password = "some", "pw" })
		do(t, srv, "ACL", "SETUSER", "some", "resetpass", ">other")
		r := routed(rdb).Do(within(t, 5*time.Second), request("PING"))[0]
		if !strings.HasPrefix(r.Refused, "WRONGPASS ") || r.Err != nil {
			t.Errorf("got %+v", r)
		}
	})
}

// rueidis does not see that a connection was lost until it uses it, so the first requests may fail.
// They are not repeated.
func TestRestartedServer(t *testing.T) {
	srv := redisserver.Start(t)
	store := routed(client(t, srv.Addr()))
	for range 3 {
		eventually(t, "an answer", func() bool { return store.Do(within(t, 5*time.Second), request("PING"))[0].Value == "PONG" })
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// renewals tells of one.
type renewals chan struct{}

// Observe implements holdfast.Observer.
func (r renewals) Observe(event holdfast.Event) {
	if event.Kind != holdfast.EventRenewed {
		return
	}
	select {
	case r <- struct{}{}:
	default:
	}
}

// A connection on which nothing comes through any more costs one request, not the lease: the next
// goes on another.
func TestRenewalOnAnotherConnection(t *testing.T) {
	srv := redisserver.Start(t)
	p := fault.Start(t, srv.Addr())
	renewed := make(renewals, 1)
	c := open(t, client(t, p.Addr()), &holdfast.Config{Observer: renewed})
	defer c.Close()
	lease, err := c.Mutex("m", holdfast.WithTTL(6*time.Second)).Lock(within(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	stuck := p.HoldRequest("EVALSHA")
	<-stuck.Arrived()
	select {
	case <-lease.Done():
		t.Errorf("lost: %v", lease.Err())
	case <-renewed:
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}
