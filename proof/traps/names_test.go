package traps_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 29: fencing counters that never expire, one a name. Here there is at most one a slot,
// however many names come and go.
func TestNamesGoneLeaveOneKeyPerSlot(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	srv := redisserver.Start(t)
	c := harness.Locker(t, srv.Addr(), nil)
	var all sync.WaitGroup
	for worker := range 50 {
		all.Go(func() {
			for i := range 400 {
				if err := harness.Given(c.Mutex(fmt.Sprint(worker, ":", i)).Lock(t.Context())); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if left := harness.Must(t, srv, "DBSIZE").(int64); left > 16384 {
		t.Errorf("%d keys are left: more than one a slot", left)
	}
	for _, key := range harness.Must(t, srv, "KEYS", "*").([]any) {
		if !strings.HasSuffix(key.(string), ":clock") {
			t.Errorf("%q is left", key)
		}
	}
}

// Trap 40: tokens grow through the loss of all data, and through a clock that is ahead; a clock
// that holds something else is refused and left.
func TestTokensGrowThroughTrouble(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	m := harness.Locker(t, srv.Addr(), nil).Mutex("n")
	token := func() int64 {
		lease := harness.Lock(t, m)
		defer harness.Release(t, lease)
		return lease.Token()
	}
	first := token()
	harness.Must(t, srv, "FLUSHALL")
	second := token()
	if second <= first {
		t.Errorf("%d, and %d after all data was lost", first, second)
	}
	clock := harness.Must(t, srv, "KEYS", "*").([]any)[0].(string)
	const ahead = int64(8_000_000_000_000_000)
	harness.Must(t, srv, "SET", clock, ahead)
	if third := token(); third != ahead+1 {
		t.Errorf("%d after a clock of %d", third, ahead)
	}
	for _, tampered := range []string{"9007199254740991", "9999999999999999", "tomorrow", "99999999999999999"} {
		harness.Must(t, srv, "SET", clock, tampered)
		if err := harness.Answered(t,
			func() error { return harness.Given(m.TryLock(harness.Within(t, harness.Patience))) }); err == nil ||
			!strings.Contains(err.Error(), clock) {
			t.Errorf("a clock of %q: %v", tampered, err)
		}
		if got := harness.Must(t, srv, "GET", clock); got != tampered {
			t.Errorf("a clock of %q is %q now", tampered, got)
		}
		if harness.Must(t, srv, "EXISTS", harness.KeyOf("n")) != int64(0) {
			t.Errorf("a clock of %q left a lock behind", tampered)
		}
	}
}

// A largest token of fewer digits, as was written before it always had sixteen, counts as that
// number: the next is the larger of it + 1 and the server's time, and has sixteen digits.
func TestTokenOfFewerDigits(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	a, b := harness.Locker(t, srv.Addr(), nil), harness.Locker(t, srv.Addr(), nil)
	m := a.Mutex("n")
	clock := ""
	plant := func(token int64) { harness.Must(t, srv, "SET", clock, token) }
	tries := map[string]func(token int64) (*holdfast.Lease, error){
		"a lock":  func(int64) (*holdfast.Lease, error) { return m.Lock(t.Context()) },
		"a group": func(int64) (*holdfast.Lease, error) { return a.All([]string{"n"}).Lock(t.Context()) },
		"an owner": func(int64) (*holdfast.Lease, error) {
			return a.Mutex("n", holdfast.WithOwner("o")).Lock(t.Context())
		},
		"permits": func(int64) (*holdfast.Lease, error) { return a.Semaphore("n", 3).Acquire(t.Context(), 2) },
		"who waits": func(token int64) (*holdfast.Lease, error) {
			holder, next := harness.Lock(t, m), harness.Claim(t.Context(), b.Mutex("n"))
			harness.Waiting(t, srv, "n", 1)
			plant(token)
			harness.Release(t, holder)
			return next.Got(t), nil
		},
	}
	harness.Release(t, harness.Lock(t, m))
	clock = harness.Must(t, srv, "KEYS", "*:clock").([]any)[0].(string)
	for name, try := range tries {
		for _, token := range []int64{7, 5000012, 1e15 - 1} {
			plant(token)
			before, err := srv.Time()
			if err != nil {
				t.Fatal(err)
			}
			lease, err := try(token)
			if err != nil {
				t.Fatal(name, ": ", err)
			}
			text := harness.Must(t, srv, "GET", clock).(string)
			after, err := srv.Time()
			if got := lease.Token(); err != nil || got < before.UnixMicro() || got > after.UnixMicro() ||
				len(text) != 16 {
				t.Errorf("%s after %d: token %d, between %d and %d; the clock is %s", name, token, got,
					before.UnixMicro(), after.UnixMicro(), text)
			}
			harness.HandBack(t, lease)
		}
	}
}
