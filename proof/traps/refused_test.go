package traps_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Traps 22, 28 and 45: busy, down, denied and unable look alike. Each server that cannot serve is
// named for what it is, with whether the request took effect, and leaves nothing behind.
func TestMutexRefusedSaysWhy(t *testing.T) {
	t.Parallel()
	few := func(o *redis.Options) { o.Username, o.Password = "few", "pw" }
	for name, test := range map[string]struct {
		opts        []string
		make        func(*testing.T, *redisserver.Server)
		client      func(*redis.Options)
		kind        holdfast.StoreKind
		text        string
		unavailable bool // matches ErrUnavailable
		waits       bool // Lock goes on asking
	}{
		"down": {make: func(_ *testing.T, srv *redisserver.Server) { srv.Kill() }, kind: holdfast.StoreUnreachable, unavailable: true, waits: true},
		"wrong password": {make: user("+@all"), client: func(o *redis.Options) { o.Username, o.Password = "few", "guess" },
			kind: holdfast.StoreDenied, text: "WRONGPASS"},
		"no password": {make: func(t *testing.T, srv *redisserver.Server) {
			harness.Must(t, srv, "ACL", "SETUSER", "default", "resetpass", ">pw")
		},
			kind: holdfast.StoreDenied, text: "NOAUTH"},
		"no scripts":        {make: user("-@all"), client: few, kind: holdfast.StoreDenied, text: "NOPERM"},
		"no SET in scripts": {make: user("+@all", "-set"), client: few, kind: holdfast.StoreDenied},
		"no keys":           {make: user("+@all", "resetkeys", "~other*"), client: few, kind: holdfast.StoreDenied},
		"a replica": {make: func(t *testing.T, srv *redisserver.Server) { harness.Must(t, srv, "REPLICAOF", "127.0.0.1", "1") },
			kind: holdfast.StoreReadOnly, unavailable: true, waits: true},
		"too few replicas": {make: func(t *testing.T, srv *redisserver.Server) {
			harness.Must(t, srv, "CONFIG", "SET", "min-replicas-to-write", 1)
		},
			kind: holdfast.StoreNoReplicas, text: "NOREPLICAS", unavailable: true, waits: true},
		"out of memory": {make: full, kind: holdfast.StoreOutOfMemory, unavailable: true, waits: true},
		"cannot persist": {opts: []string{"--dbfilename", "taken"}, make: unsaved, kind: holdfast.StoreMisconfigured, text: "MISCONF",
			unavailable: true, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redisserver.Start(t, test.opts...)
			test.make(t, srv)
			if test.client == nil {
				test.client = func(*redis.Options) {}
			}
			var giveUp atomic.Pointer[context.CancelFunc]
			m := harness.Locker(t, srv.Addr(), &holdfast.Config{Observer: harness.Observer(func(e holdfast.Event) {
				if e.Kind == holdfast.EventRetried {
					(*giveUp.Load())()
				}
			})}, test.client).Mutex("n")
			judge := func(op string, ask func(context.Context) (*holdfast.Lease, error)) (err error) {
				t.Helper()
				var failure *holdfast.StoreError
				harness.Eventually(t, "an answer", func() bool { // who stands still for a moment gives none
					ctx, cancel := context.WithCancel(harness.Within(t, harness.Patience))
					defer cancel()
					giveUp.Store(&cancel)
					failure = nil
					_, err = ask(ctx)
					return !errors.As(err, &failure) || !failure.MayHaveApplied
				})
				if failure == nil {
					t.Fatalf("%s: got %v", op, err)
				}
				if failure.Kind != test.kind || failure.MayHaveApplied || failure.Name != "n" || failure.Op == "" ||
					!strings.Contains(err.Error(), test.text) {
					t.Errorf("%s: got %+v", op, failure)
				}
				if errors.Is(err, holdfast.ErrUnavailable) != test.unavailable || errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUncertain) {
					t.Errorf("%s: matches what it is not: %v", op, err)
				}
				return err
			}
			_ = judge("TryLock", m.TryLock)
			err := judge("Lock", m.Lock)
			if errors.Is(err, context.Canceled) != test.waits {
				t.Errorf("Lock waits: %v, want %v: %v", !test.waits, test.waits, err)
			}
			if test.kind != holdfast.StoreUnreachable && test.text != "NOAUTH" {
				if v := harness.Must(t, srv, "DBSIZE"); v != int64(0) {
					t.Errorf("%v keys left", v)
				}
			}
		})
	}
}

// Trap 22: a wait that ended says why it was in vain, and not that the last answer, for which there
// was no time left, did not come: a connection's deadline is at times ahead of that of the context
// which it comes from.
func TestWaiterRefusedToTheEndSaysWhy(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	harness.Must(t, srv, "REPLICAOF", "127.0.0.1", "1")
	var refusals atomic.Int32
	m := harness.Locker(t, p.Addr(), &holdfast.Config{Observer: harness.Observer(func(e holdfast.Event) {
		if failure := (*holdfast.StoreError)(nil); e.Kind == holdfast.EventRetried && errors.As(e.Err, &failure) && failure.Kind == holdfast.StoreReadOnly {
			refusals.Add(1)
		}
	})}).Mutex("n")
	for shown := 0; shown < 12; {
		before := refusals.Load()
		waiter := harness.Claim(harness.Within(t, 500*time.Millisecond), m)
		harness.Eventually(t, "it is refused, or over before", func() bool { return refusals.Load() > before || waiter.Over() })
		if refusals.Load() == before {
			continue // the machine stood still for so long that nothing was heard
		}
		shown++
		held := p.HoldAnswer("READONLY")
		harness.Signalled(t, "Lock returns", waiter.Done)
		held.Pass()
		p.Disarm()
		var failure *holdfast.StoreError
		if !errors.As(waiter.Err, &failure) || failure.Kind != holdfast.StoreReadOnly || !errors.Is(waiter.Err, context.DeadlineExceeded) {
			t.Fatalf("got %v", waiter.Err)
		}
	}
}

// user makes the user few.
func user(rules ...string) func(*testing.T, *redisserver.Server) {
	return func(t *testing.T, srv *redisserver.Server) {
		t.Helper()
		args := []any{"ACL", "SETUSER", "few", "reset", "on", ">pw", "~*", "resetchannels", "&*"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		harness.Must(t, srv, args...)
	}
}

// full makes a server refuse what takes memory.
func full(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	harness.Must(t, srv, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	harness.Must(t, srv, "CONFIG", "SET", "maxmemory", 1)
}

// roomy ends that.
func roomy(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	harness.Must(t, srv, "CONFIG", "SET", "maxmemory", 0)
}

// unsaved makes a server fail to save, so that it refuses writes. A directory is where its file
// should go.
func unsaved(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(srv.Dir(), "taken", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	harness.Must(t, srv, "CONFIG", "SET", "save", "3600 1")
	harness.Must(t, srv, "BGSAVE")
	harness.Eventually(t, "saving fails", func() bool {
		return strings.Contains(harness.Must(t, srv, "INFO", "persistence").(string), "rdb_last_bgsave_status:err")
	})
}

// saved ends that.
func saved(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	harness.Must(t, srv, "CONFIG", "SET", "save", "")
	if err := os.RemoveAll(filepath.Join(srv.Dir(), "taken")); err != nil {
		t.Fatal(err)
	}
	harness.Must(t, srv, "BGSAVE")
	harness.Eventually(t, "saving works", func() bool {
		return strings.Contains(harness.Must(t, srv, "INFO", "persistence").(string), "rdb_last_bgsave_status:ok")
	})
}

// A server without memory, or that cannot persist, is waited for as one that loads: a Lock outlasts
// it, a release is tried again, and only who asks once is refused.
func TestMutexLockOutlastsRefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts          []string
		refuse, serve func(*testing.T, *redisserver.Server)
		kind          holdfast.StoreKind
	}{
		"out of memory":  {nil, full, roomy, holdfast.StoreOutOfMemory},
		"cannot persist": {[]string{"--dbfilename", "taken"}, unsaved, saved, holdfast.StoreMisconfigured},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redisserver.Start(t, c.opts...)
			var mu sync.Mutex
			again := map[string]int{}
			client := harness.Locker(t, srv.Addr(), &holdfast.Config{TTL: time.Minute, ReleaseTimeout: harness.Patience, Observer: harness.Observer(func(e holdfast.Event) {
				if failure := (*holdfast.StoreError)(nil); e.Kind == holdfast.EventRetried && errors.As(e.Err, &failure) && failure.Kind == c.kind {
					mu.Lock()
					defer mu.Unlock()
					again[e.Name]++
				}
			})})
			held, released := harness.Lock(t, client.Mutex("held")), make(chan error, 1)
			c.refuse(t, srv)
			go func() { released <- held.Release() }()
			harness.Eventually(t, "TryLock is refused", func() bool { // who stands still for a moment gets no answer
				var failure *holdfast.StoreError
				_, err := client.Mutex("once").TryLock(harness.Within(t, harness.Patience))
				return errors.As(err, &failure) && failure.Kind == c.kind && !failure.MayHaveApplied
			})
			ctx := harness.Within(t, harness.Patience)
			waits := map[string]func() (*holdfast.Lease, error){
				"mutex":     func() (*holdfast.Lease, error) { return client.Mutex("mutex").Lock(ctx) },
				"reader":    func() (*holdfast.Lease, error) { return client.RWMutex("reader").RLock(ctx) },
				"semaphore": func() (*holdfast.Lease, error) { return client.Semaphore("semaphore", 2).Acquire(ctx, 1) },
				"group":     func() (*holdfast.Lease, error) { return client.All([]string{"group", "other"}).Lock(ctx) },
				"election":  func() (*holdfast.Lease, error) { return client.Election("election").Campaign(ctx) },
				"polling": func() (*holdfast.Lease, error) {
					return client.Mutex("polling", holdfast.WithPolling(20*time.Millisecond, 0)).Lock(ctx)
				},
			}
			type outcome struct {
				name  string
				lease *holdfast.Lease
				err   error
			}
			outcomes := make(chan outcome, len(waits))
			for name, wait := range waits {
				go func() {
					lease, err := wait()
					outcomes <- outcome{name, lease, err}
				}()
			}
			harness.Eventually(t, "all were refused, and ask again", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(again) == len(waits)-1 // who polls does not say so
			})
			if c.kind == holdfast.StoreOutOfMemory { // a release takes none
				if err := <-released; err != nil {
					t.Errorf("Release: %v", err)
				}
			}
			if len(outcomes)+len(released) > 0 {
				t.Error("somebody did not outlast it")
			}
			c.serve(t, srv)
			if c.kind != holdfast.StoreOutOfMemory {
				if err := <-released; err != nil {
					t.Errorf("Release: %v", err)
				}
			}
			for range len(waits) {
				if out := <-outcomes; out.err != nil {
					t.Errorf("%s: %v", out.name, out.err)
				} else {
					harness.Release(t, out.lease)
				}
			}
		})
	}
}

// Trap 22: busy is busy, in one round trip and when the time to wait is over, and a wait that ctx
// ends is no "busy".
func TestMutexBusyIsHeldError(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	lease := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n", holdfast.WithLabel("me")))
	ctx, giveUp := context.WithCancel(harness.Within(t, harness.Patience))
	defer giveUp()
	m := harness.Locker(t, srv.Addr(), &holdfast.Config{TTL: time.Minute, Observer: harness.Observer(func(e holdfast.Event) {
		if e.Kind == holdfast.EventWaiting {
			giveUp()
		}
	})}).Mutex("n")
	err := harness.Answered(t, func() error { return harness.Given(m.TryLock(harness.Within(t, harness.Patience))) })
	var busy *holdfast.HeldError
	if !errors.As(err, &busy) || !errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUnavailable) || busy.Holder != "me" {
		t.Errorf("got %#v", err)
	}
	limited := harness.Locker(t, srv.Addr(), &holdfast.Config{TTL: time.Minute, Wait: 200 * time.Millisecond}).Mutex("n")
	err = harness.Answered(t, func() error { return harness.Given(limited.Lock(harness.Within(t, harness.Patience))) })
	if !errors.As(err, &busy) || !errors.Is(err, holdfast.ErrHeld) || !errors.Is(err, holdfast.ErrWaitOver) || busy.Holder != "me" {
		t.Errorf("got %#v", err)
	}
	_, err = m.Lock(ctx)
	if !errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	harness.Release(t, lease)
	harness.Gone(t, srv, "n", harness.Patience) // who gave up may be handed it before it has left
}

// Trap 28: a server that reads its data is loading, and a Lock that waits gets in when it has.
func TestMutexLockOutlastsLoading(t *testing.T) {
	t.Parallel()
	slow := []string{"--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"}
	if srv, err := redisserver.Run(t.Context(), slow...); err != nil {
		t.Skip("this server cannot be made to load slowly: ", err)
	} else {
		_ = srv.Close()
	}
	srv := redisserver.Start(t, slow...)
	for i := range 1500 {
		harness.Must(t, srv, "SET", fmt.Sprint("filler", i), strings.Repeat("x", 1024))
	}
	harness.Must(t, srv, "SAVE")
	m := harness.Locker(t, srv.Addr(), nil).Mutex("n")
	srv.Kill() // so that nobody gets in before it loads
	restarted := make(chan error, 1)
	go func() { restarted <- srv.Restart() }()
	seen := false
	harness.Eventually(t, "an answer", func() bool {
		lease, err := m.TryLock(harness.Within(t, harness.Patience))
		var failure *holdfast.StoreError
		if errors.As(err, &failure) && failure.Kind == holdfast.StoreLoading && !failure.MayHaveApplied {
			seen = true
		}
		if err == nil {
			harness.Release(t, lease)
		}
		return seen || err == nil
	})
	lease := harness.Lock(t, m)
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	harness.Release(t, lease)
	if !seen {
		t.Skip("it was loaded too quickly to be seen")
	}
}

// Trap 41: out of memory, a release must work, also one that hands on; and who joins waits for a
// place.
func TestLeaseReleaseOutOfMemoryHandsOn(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	seen := new(harness.Events)
	var refused atomic.Int32
	c := harness.Locker(t, srv.Addr(), &holdfast.Config{TTL: 6 * time.Second, Observer: seen})
	other := harness.Locker(t, srv.Addr(), &holdfast.Config{Observer: harness.Observer(func(e holdfast.Event) {
		if e.Kind == holdfast.EventRetried {
			refused.Add(1)
		}
	})})
	alone, held := harness.Lock(t, c.Mutex("alone")), harness.Lock(t, c.Mutex("held"))
	contended := harness.Lock(t, c.Mutex("contended"))
	next := harness.Claim(harness.Within(t, harness.Patience), other.Mutex("contended"))
	harness.Waiting(t, srv, "contended", 1)
	full(t, srv)

	harness.Release(t, alone)
	harness.Free(t, srv, "alone")
	harness.Release(t, contended)
	harness.HandBack(t, next.Got(t))
	harness.Gone(t, srv, "contended", harness.Patience)

	joining := harness.Claim(harness.Within(t, harness.Patience), other.Mutex("held"))
	harness.Eventually(t, "refused or in the queue", func() bool { return refused.Load() > 0 || harness.Queued(srv, "held") == 1 })
	before := seen.Count(holdfast.EventRenewed)
	harness.Eventually(t, "a renewal", func() bool { return seen.Count(holdfast.EventRenewed) > before })
	if err := harness.Checked(t, held); err != nil {
		t.Errorf("the holder: %v", err)
	}
	harness.Release(t, held)
	roomy(t, srv)
	harness.HandBack(t, joining.Got(t))
	harness.Gone(t, srv, "held", harness.Patience)
	if n := harness.Must(t, srv, "DBSIZE"); n.(int64) > 3 { // clocks
		t.Errorf("%v keys left", n)
	}
}
