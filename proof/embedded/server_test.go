package embedded_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/proof/embedded"
)

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
