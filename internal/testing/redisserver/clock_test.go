package redisserver_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func TestServerShowsWhatItsClockSays(t *testing.T) {
	clock := redisserver.NewClock(t)
	shown := func(srv *redisserver.Server) time.Time {
		t.Helper()
		at, err := srv.Time()
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	start := time.Unix(1, 0)
	clock.Show(start)
	srv := clock.Start(t)
	if first, second := shown(srv), shown(srv); first.Before(start) || !second.After(first) {
		t.Errorf("%v, then %v", first, second)
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	if at := shown(srv); at.Year() != 1970 {
		t.Errorf("after a restart it is %v", at)
	}
	for _, at := range []time.Time{time.UnixMicro(1), time.UnixMicro(200_000), time.UnixMicro(1e15 - 1),
		time.UnixMicro(7e15)} {
		clock.Stop(at)
		if got := shown(srv); !got.Equal(at) {
			t.Errorf("it stands at %v, not %v", got.UnixMicro(), at.UnixMicro())
		}
	}
	clock.Ahead(0)
	if off := time.Until(shown(srv)); off.Abs() > time.Hour {
		t.Errorf("it is off by %v", off)
	}
}
