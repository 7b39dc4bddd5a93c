package clock_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/pubsubtest"
	"github.com/holdfast-go/holdfast/proof/embedded"
	"github.com/holdfast-go/holdfast/redisstore"
)

func TestSubscriptionQuietGivesSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		sub, s := pubsubtest.Subscribe(t, redisstore.New(srv.Client()))
		pubsubtest.Add(t, sub, "a")
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
		pubsubtest.Add(t, sub, "a")
		if s.Heard("gap") {
			t.Error("a gap, and nothing was wanted")
		}
	})
}

func TestSubscriptionHalfOpenTellsGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		sub, s := pubsubtest.Subscribe(t, redisstore.New(srv.Client()))
		pubsubtest.Add(t, sub, "a", "b")
		began := time.Now()
		srv.DropAnswer("subscribe") // to the sign of life, and all that would come on that connection
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

func TestSubscriptionServerGoneMakesNoTightLoop(t *testing.T) {
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
		sub, _ := pubsubtest.Subscribe(t, redisstore.New(rdb))
		pubsubtest.Add(t, sub, "a")
		srv.Disconnect()
		<-time.After(time.Hour)
		if n := dials.Load(); n < 100 || n > 3000 {
			t.Errorf("%d attempts in an hour", n)
		}
	})
}
