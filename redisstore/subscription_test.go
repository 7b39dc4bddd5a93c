package redisstore_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/redisstore/internal/embedded"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/storetest/hearing"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

func subscription(t *testing.T, rdb redis.UniversalClient) (wire.Subscription, *hearing.Sink) {
	t.Helper()
	return hearing.Subscribe(t, redisstore.New(rdb))
}

func TestSubscription(t *testing.T) {
	speaking := func(protocol int) func(*testing.T, *redisserver.Server) store.Store {
		return func(t *testing.T, srv *redisserver.Server) store.Store {
			return redisstore.New(client(t, srv, func(o *redis.Options) { o.Protocol = protocol }))
		}
	}
	hearing.Run(t, hearing.Backend{
		Open: func(t *testing.T, srv *redisserver.Server, user string) store.Store {
			return redisstore.New(client(t, srv, func(o *redis.Options) {
				if user != "" {
					o.Username, o.Password = user, "pw"
				}
			}))
		},
		Protocols: map[string]func(*testing.T, *redisserver.Server) store.Store{"RESP2": speaking(2), "RESP3": speaking(3)},
	})
}

func TestQuietConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		sub, s := subscription(t, srv.Client())
		hearing.Add(t, sub, "a")
		commands := srv.Redis.CommandCount
		idle := commands()
		<-time.After(time.Minute)
		if n := commands() - idle; n < 11 || n > 12 {
			t.Errorf("%d commands in a quiet minute, want a sign of life each 5 s", n)
		}
		if s.Heard("gap") {
			t.Error("a gap while all was well")
		}

		_ = sub.Remove(t.Context(), "a")
		synctest.Wait()
		idle = commands()
		<-time.After(time.Hour)
		if n := commands() - idle; n != 0 {
			t.Errorf("%d commands in an hour without channels", n)
		}
		if n := srv.Redis.CurrentConnectionCount(); n != 0 {
			t.Errorf("%d connections after an hour without channels", n)
		}
		hearing.Add(t, sub, "a")
		if s.Heard("gap") {
			t.Error("a gap, and nothing was wanted")
		}
	})
}

func TestHalfOpenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		sub, s := subscription(t, srv.Client())
		hearing.Add(t, sub, "a", "b")
		began := time.Now()
		srv.DropAnswer("subscribe") // and all that would come on that connection
		<-time.After(4 * time.Second)
		srv.Redis.Publish("a", "heard")
		for !s.Heard("gap") {
			<-time.After(time.Millisecond)
		}
		if took := time.Since(began); took < 14*time.Second || took > 14500*time.Millisecond {
			t.Errorf("the gap was told after %v, want 4 s, 5 s and 5 s", took)
		}
		srv.Redis.Publish("b", "again")
		synctest.Wait()
		if !s.Heard("a:heard") || !s.Heard("b:again") {
			t.Error("a message was not heard")
		}
	})
}

func TestNoTightLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		var dials atomic.Int32
		rdb := srv.Client(func(o *redis.Options) {
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) > 1 {
					return nil, errors.New("no")
				}
				return dial(ctx, network, addr)
			}
		})
		sub, _ := subscription(t, rdb)
		hearing.Add(t, sub, "a")
		srv.Disconnect()
		<-time.After(time.Hour)
		if n := dials.Load(); n < 100 || n > 3000 {
			t.Errorf("%d attempts in an hour", n)
		}
	})
}
