package clock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/embedded"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/storetest"
)

// The suite on the embedded server, and with HOLDFAST_PROOF=1 on one that shows another time, too.
func TestConformance(t *testing.T) {
	for name, shows := range map[string]time.Time{
		"miniredis":                   {},
		"miniredis in 1970":           time.UnixMicro(10),
		"miniredis in September 2001": time.UnixMicro(1e15 - 777_777), // soon there is a digit more
	} {
		t.Run(name, func(t *testing.T) {
			if !shows.IsZero() && !harness.Thorough {
				t.Skip("with HOLDFAST_PROOF=1 only")
			}
			var srv *embedded.Server
			var clock *embedded.Clock
			storetest.Run(t, storetest.Backend{
				Around: func(t *testing.T, run func(*testing.T)) {
					synctest.Test(t, func(t *testing.T) {
						t.Cleanup(func() { sleep(time.Minute) }) // go-redis dials in the background for a while
						srv = embedded.Start(t)
						clock = embedded.NewClock(srv)
						if !shows.IsZero() {
							clock.Show(shows)
						}
						run(t)
					})
				},
				Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
					rdb := srv.Client(func(o *redis.Options) { o.ClientName = "suite" })
					tb.Cleanup(func() { rdb.Close() })
					return harness.Open(tb, rdb, config)
				},
				Left: func(_ testing.TB, prefix string) []string {
					clock.Tick()
					return locks(srv.Redis.Keys(), prefix)
				},
			})
		})
	}
}

// locks are the keys under a prefix that are not the clock of a slot.
func locks(keys []string, prefix string) (states []string) {
	for _, key := range keys {
		if strings.HasPrefix(key, prefix) && !strings.HasSuffix(key, "}:clock") {
			states = append(states, key)
		}
	}
	return states
}
