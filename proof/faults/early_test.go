package faults

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/storetest"
)

// The times that the clock of a server without a battery shows until it hears the time.
var (
	in1970 = time.Unix(0, 0)
	in2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// A store keeps all its promises in 1970, too. Package simulate draws any time from then to 2200,
// and package clock has steps of years and every number of digits.
func TestConformanceIn1970(t *testing.T) {
	if !harness.Measured() {
		t.Skip("it takes a minute of its own: HOLDFAST_PROOF=1, as in make proof, runs it")
	}
	clock := redisserver.NewClock(t)
	clock.Show(in1970)
	srv := clock.Start(t)
	storetest.Run(t, storetest.Backend{
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			c, closeAll, err := harness.Route{Topology: harness.Single, Addrs: []string{srv.Addr()}}.Open(config, nil,
				nil)
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { _ = closeAll() })
			return c
		},
	})
}

// A server with an append-only file is killed and comes back at another time, to and fro: locks go
// on, with tokens that grow through all of it.
func TestServerRestartedAtAnyTime(t *testing.T) {
	harness.Long(t)
	for name, at := range map[string]time.Time{"1970": in1970, "2000": in2000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := redisserver.NewClock(t)
			srv := clock.Start(t, "--appendonly", "yes", "--appendfsync", "always")
			one, other := newClient(t, srv.Addr(), nil).Mutex("n", holdfast.WithTTL(time.Minute)), newClient(t,
				srv.Addr(), nil).Mutex("n")
			restart := func(show func()) {
				t.Helper()
				srv.Kill()
				show()
				if err := srv.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			largest := int64(0)
			grows := func(lease *holdfast.Lease) *holdfast.Lease {
				t.Helper()
				if lease.Token() <= largest {
					t.Errorf("token %d after %d", lease.Token(), largest)
				}
				largest = lease.Token()
				return lease
			}
			first := grows(harness.Lock(t, one))
			next := harness.Claim(t.Context(), other)
			harness.Waiting(t, srv, "n", 1)
			restart(func() { clock.Show(at) })
			if err := harness.Checked(t, first); err != nil { // a clock that is set back ends nothing
				t.Fatal(err)
			}
			harness.Release(t, first)
			second := grows(next.Got(t))
			restart(func() { clock.Ahead(0) })
			if err := harness.Checked(t, second); !errors.Is(err, holdfast.ErrLost) { // as if it was time that passed
				t.Errorf("a hold of %v was answered %v today", at.Year(), err)
			}
			harness.Release(t, grows(harness.Lock(t, one)))
			restart(func() { clock.Show(at) })
			harness.Release(t, grows(harness.Lock(t, one)))
			for _, key := range harness.Must(t, srv, "KEYS", "*:clock").([]any) { // with all its digits
				if token := harness.Must(t, srv, "GET", key).(string); len(token) != 16 ||
					strings.Trim(token, "0123456789") != "" {
					t.Errorf("%s is %q", key, token)
				}
			}
		})
	}
}
