package traps_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 29: fencing counters that never expire, one a name. Here there is at most one a slot,
// however many names come and go.
func TestNamesGoneLeaveOneKeyPerSlot(t *testing.T) {
	t.Parallel()
	srv, _ := harness.Proxied(t)
	c := harness.Locker(t, srv.Addr(), nil)
	for round := range 2 {
		var all sync.WaitGroup
		for worker := range 50 {
			all.Go(func() {
				for i := range 400 {
					lease, err := c.Mutex(fmt.Sprintf("%d:%d:%d", round, worker, i)).Lock(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					harness.Release(t, lease)
				}
			})
		}
		all.Wait()
	}
	left := harness.Must(t, srv, "DBSIZE").(int64)
	t.Logf("40,000 names left %d keys", left)
	if left > 16384 {
		t.Errorf("%d keys are left: more than one a slot", left)
	}
	for _, key := range harness.Must(t, srv, "KEYS", "*").([]any) {
		if !strings.HasSuffix(key.(string), ":clock") {
			t.Errorf("%q is left", key)
		}
	}
}

// Trap 30: it runs where SHA-1 is refused.
func TestUnderFIPS(t *testing.T) {
	t.Parallel()
	srv, _ := harness.Proxied(t)
	out, err := harness.Child("TestChildLocks", "GODEBUG=fips140=only", "HOLDFAST_ADDR="+srv.Addr()).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "locked and released") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestChildLocks is what TestUnderFIPS runs.
func TestChildLocks(t *testing.T) {
	harness.OnlyChild(t)
	harness.Release(t, harness.Lock(t, harness.Locker(t, os.Getenv("HOLDFAST_ADDR"), nil).Mutex("n")))
	fmt.Println("locked and released")
}

// Trap 35: acquires that reach the server after their sender gave up, and after its cleaning up,
// would hold the lock for a TTL that nobody renews. They carry a moment after which they do
// nothing.
func TestMutexAcquireAfterGivingUpDoesNothing(t *testing.T) {
	t.Parallel()
	srv, _ := harness.Proxied(t)
	c := harness.Locker(t, srv.Addr(), harness.Brief(time.Minute), func(o *redis.Options) { o.PoolSize = 64 })
	harness.Release(t, harness.Lock(t, c.Mutex("warm")))
	sets := srv.CommandStats()["set"]
	srv.Stop()
	const zombies = 30
	var all sync.WaitGroup
	for i := range zombies {
		all.Go(func() {
			if _, err := c.Mutex(fmt.Sprintf("zombie:%d", i)).TryLock(harness.Within(t, harness.Patience)); err == nil {
				t.Error("a stopped server gave a lock")
			}
		})
	}
	all.Wait()
	srv.Continue()
	for i := range zombies {
		harness.Gone(t, srv, fmt.Sprintf("zombie:%d", i), harness.Patience)
	}
	if n := srv.CommandStats()["set"] - sets; n != 0 {
		t.Errorf("%d acquires took effect after their time, and were undone", n)
	}
}

// Trap 40: tokens grow through the loss of all data, and through a clock that is ahead; a clock
// that holds something else is refused and left.
func TestTokensGrowThroughTrouble(t *testing.T) {
	t.Parallel()
	srv, _ := harness.Proxied(t)
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
		if err := harness.Answered(t, func() error { return harness.Given(m.TryLock(harness.Within(t, harness.Patience))) }); err == nil || !strings.Contains(err.Error(), clock) {
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

// Trap 47: the smallest permissions that are enough. Without the right to subscribe, waiting goes
// on by asking.
func TestSmallestPermissions(t *testing.T) {
	t.Parallel()
	srv, _ := harness.Proxied(t)
	commands := strings.Fields("+eval +evalsha +time +get +set +getset +del +exists +pttl +pexpire +publish +zadd +zcount +zrange" +
		" +zrangebyscore +zrem +zremrangebyscore +zrevrank +zscore")
	for name, extra := range map[string][]string{"hears": {"+subscribe", "+unsubscribe"}, "deaf": {}} {
		t.Run(name, func(t *testing.T) {
			rule := append([]string{"ACL", "SETUSER", name, "reset", "on", ">pw", "~holdfast:*", "resetchannels", "&holdfast:*", "-@all"}, append(commands, extra...)...)
			args := make([]any, len(rule))
			for i, word := range rule {
				args[i] = word
			}
			harness.Must(t, srv, args...)
			as := func(o *redis.Options) { o.Username, o.Password = name, "pw" }
			one, other := harness.Locker(t, srv.Addr(), nil, as), harness.Locker(t, srv.Addr(), nil, as)

			held := harness.Lock(t, one.Mutex(name))
			if _, err := other.Mutex(name).TryLock(harness.Within(t, harness.Patience)); err == nil {
				t.Error("two hold")
			}
			next := harness.Claim(harness.Within(t, harness.Patience), other.Mutex(name))
			harness.Waiting(t, srv, name, 1)
			harness.Release(t, held)
			lease := next.Got(t)
			if err := harness.Checked(t, lease); !harness.LetGo(err) {
				t.Error(err)
			}
			harness.HandBack(t, lease)
			short := harness.Lock(t, one.Mutex(name, holdfast.WithMinHold(100*time.Millisecond), holdfast.WithOwner("o")))
			harness.Release(t, harness.Lock(t, other.Mutex(name, holdfast.WithOwner("o"))))
			harness.Release(t, short)
			harness.Release(t, harness.Lock(t, other.Mutex(name)))
		})
	}
}
