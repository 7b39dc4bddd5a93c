package embedded_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/proof/embedded"
)

func TestExpiryIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		rdb, ctx := srv.Client(), context.Background()
		if err := rdb.Set(ctx, "k", "v", 100*time.Millisecond).Err(); err != nil {
			t.Fatal(err)
		}
		born := rdb.Time(ctx).Val()
		<-time.After(100*time.Millisecond - 1)
		if v, err := rdb.Get(ctx, "k").Result(); v != "v" {
			t.Fatalf("gone a nanosecond too early: %v", err)
		}
		<-time.After(1)
		if err := rdb.Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
			t.Fatalf("still there after 100 ms: %v", err)
		}
		if took := rdb.Time(ctx).Val().Sub(born); took != 100*time.Millisecond {
			t.Fatalf("by TIME it took %v", took)
		}
	})
}

func TestAnHourPassesQuickly(t *testing.T) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		rdb, ctx := srv.Client(), context.Background()
		sub := rdb.Subscribe(ctx, "c")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		virtual := time.Now()
		for range 720 {
			if err := rdb.Publish(ctx, "c", "tick").Err(); err != nil {
				t.Fatal(err)
			}
			if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "tick" {
				t.Fatal(m, err)
			}
			<-time.After(5 * time.Second)
		}
		if passed := time.Since(virtual); passed != time.Hour {
			t.Fatalf("%v passed", passed)
		}
	})
	if took := time.Since(began); took > time.Second {
		t.Logf("an hour took %v", took) // a slow machine is no fault
	}
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		rdb := srv.Client(func(o *redis.Options) { o.ContextTimeoutEnabled, o.MaxRetries = true, -1 })
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		srv.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := rdb.Set(ctx, "late", "v", 0).Err(); err == nil {
			t.Fatal("answered in silence")
		}
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Fatalf("gave up after %v", took)
		}
		srv.Resume()
		synctest.Wait()
		if !srv.Redis.Exists("late") {
			t.Fatal("what was written before the client gave up did not arrive")
		}
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLosses(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(*embedded.Server)
		kept bool
	}{
		"answer":  {func(s *embedded.Server) { s.DropAnswer("set") }, true},
		"request": {func(s *embedded.Server) { s.DropRequest("set") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := embedded.Start(t)
				rdb := srv.Client(func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Second })
				ctx := t.Context()
				if err := rdb.Ping(ctx).Err(); err != nil {
					t.Fatal(err)
				}
				test.lose(srv)
				if err := rdb.Set(ctx, "k", "v", 0).Err(); err == nil {
					t.Fatal("answered")
				}
				if kept := srv.Redis.Exists("k"); kept != test.kept {
					t.Fatalf("carried out: %v", kept)
				}
				if err := rdb.Set(ctx, "k", "v", 0).Err(); err != nil {
					t.Fatalf("lost again: %v", err)
				}
			})
		})
	}
}

// The remaining time of a key follows the server's clock: the key is gone after a step forward, and
// lives longer after a step back.
func TestClockOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		clock := embedded.NewClock(srv)
		rdb, ctx := srv.Client(func(o *redis.Options) { o.ClientName = "test" }), context.Background()
		set := func() {
			if err := rdb.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
		left := func(want time.Duration) {
			t.Helper()
			if got := rdb.PTTL(ctx, "k").Val(); got != want {
				t.Errorf("%v left, want %v", got, want)
			}
		}
		clock.Show(time.UnixMicro(7))
		if at := rdb.Time(ctx).Val(); at.UnixMicro() != 7 {
			t.Errorf("it is %v", at)
		}
		set()
		<-time.After(10 * time.Second)
		left(50 * time.Second)
		clock.Show(time.UnixMicro(1))
		left(time.Minute) // but for some microseconds
		clock.Show(clock.Now().Add(time.Hour))
		left(-2)
		set()
		clock.Show(clock.Now().Add(-time.Hour))
		left(time.Hour + time.Minute)
		clock.Stop(clock.Now())
		<-time.After(2 * time.Hour)
		left(time.Hour + time.Minute)
		clock.Ahead(0)
		left(-2)
	})
}
