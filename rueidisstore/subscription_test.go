package rueidisstore_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/pubsubtest"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/rueidisstore"
	"github.com/holdfast-go/holdfast/store"
)

func subscription(t *testing.T, rdb rueidis.Client) (wire.Subscription, *pubsubtest.Sink) {
	t.Helper()
	return pubsubtest.Subscribe(t, rueidisstore.New(rdb))
}

func TestSubscription(t *testing.T) {
	speaking := map[string]func(*testing.T, *redisserver.Server) store.Store{}
	for name, protocol := range protocols {
		speaking[name] = func(t *testing.T, srv *redisserver.Server) store.Store {
			return rueidisstore.New(client(t, srv.Addr(), protocol))
		}
	}
	pubsubtest.Run(t, pubsubtest.Backend{
		Open: func(t *testing.T, srv *redisserver.Server, user string) store.Store {
			return rueidisstore.New(client(t, srv.Addr(), func(o *rueidis.ClientOption) {
				o.Dialer.KeepAlive = time.Hour // it pings as often
				if user != "" {
					o.Username, o.Password, o.ForceSingleClient, o.DisableCache = user, "pw", true, true
				}
			}))
		},
		Protocols: speaking,
	})
}

// hasty is a subscription that loses patience quickly, through a proxy. It counts the connections
// that were begun.
func hasty(t *testing.T, quiet, linger time.Duration, change func(*rueidis.ClientOption)) (*redisserver.Server, *fault.Proxy, wire.Subscription, *pubsubtest.Sink, *atomic.Int32) {
	t.Helper()
	srv := redisserver.Start(t)
	p := fault.Start(t, srv.Addr())
	dials := new(atomic.Int32)
	rdb := client(t, p.Addr(), change, counted(dials), func(o *rueidis.ClientOption) { o.Dialer.KeepAlive = time.Hour }) // no pings of its own
	s := new(pubsubtest.Sink)
	sub, err := wire.RouteWithTimeouts(rueidisstore.New(rdb), quiet, linger).Subscribe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Close() })
	return srv, p, sub, s, dials
}

func counted(dials *atomic.Int32) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) {
		o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			dials.Add(1)
			return dialer.DialContext(ctx, "tcp", addr)
		}
	}
}

func TestHalfOpenConnection(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, p, sub, s, dials := hasty(t, 2*time.Second, time.Minute, protocol) // longer than the machine stands still
			pubsubtest.Add(t, sub, "a", "b")
			lost, published := p.SwallowAnswer("message"), 0
			eventually(t, "a message is lost", func() bool { // a slow machine may have cost the connection: then nobody listens
				select {
				case <-lost:
					return true
				default:
				}
				published += int(pubsubtest.Receivers(t, srv, "a", "unheard"))
				return false
			})
			before := dials.Load()
			p.Silence()
			eventually(t, "the old connection is given up", func() bool { return dials.Load() > before })
			p.Speak()
			eventually(t, "a gap", func() bool { return s.Heard("gap") })
			eventually(t, "the message", func() bool {
				pubsubtest.Receivers(t, srv, "b", "again")
				return s.Heard("b:again")
			})
			if heard := s.Count("a:unheard"); heard >= published {
				t.Errorf("the test lost nothing: %d of %d were heard", heard, published)
			}
		})
	}
}

func TestQuietConnection(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, _, sub, s, _ := hasty(t, 3*time.Second, 50*time.Millisecond, protocol)
			pubsubtest.Add(t, sub, "a")
			subscribes := func() int { return srv.CommandStats()["subscribe"] }
			eventually(t, "signs of life", func() bool { return subscribes() >= 3 })
			pubsubtest.Receivers(t, srv, "a", "x")
			eventually(t, "the message", func() bool { return s.Heard("a:x") })
			if s.Heard("gap") {
				t.Error("a gap while all was well")
			}
			_ = sub.Remove(t.Context(), "a")
			eventually(t, "the connection is closed", func() bool { return !strings.Contains(do(t, srv, "CLIENT", "LIST").(string), "subscribe") })
			before := subscribes()
			pubsubtest.Add(t, sub, "a")
			if s.Heard("gap") || subscribes() == before {
				t.Error("a gap, and nothing was wanted")
			}
		})
	}
}

func TestNoTightLoop(t *testing.T) {
	var dials atomic.Int32
	srv := redisserver.Start(t)
	rdb := client(t, srv.Addr(), counted(&dials), func(o *rueidis.ClientOption) { o.ForceSingleClient = true })
	sub, _ := subscription(t, rdb)
	pubsubtest.Add(t, sub, "a")
	before := dials.Load()
	srv.Kill()
	<-time.After(2 * time.Second) // pauses of 5 to 10, 10 to 20, 20 to 40 ms and so on: nine at most
	if n := dials.Load() - before; n < 3 || n > 12 {
		t.Errorf("%d attempts in two seconds", n)
	}
}
