package redisstore_test

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
)

// Traps 22, 28 and 45: busy, down, denied and unable look alike. Each server that cannot serve is named for what it is,
// with whether the request took effect, and leaves nothing behind.
func TestRefusals(t *testing.T) {
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
			must(t, srv, "ACL", "SETUSER", "default", "resetpass", ">pw")
		},
			kind: holdfast.StoreDenied, text: "NOAUTH"},
		"no scripts":        {make: user("-@all"), client: few, kind: holdfast.StoreDenied, text: "NOPERM"},
		"no SET in scripts": {make: user("+@all", "-set"), client: few, kind: holdfast.StoreDenied},
		"no keys":           {make: user("+@all", "resetkeys", "~other*"), client: few, kind: holdfast.StoreDenied},
		"a replica": {make: func(t *testing.T, srv *redisserver.Server) { must(t, srv, "REPLICAOF", "127.0.0.1", "1") },
			kind: holdfast.StoreReadOnly, unavailable: true, waits: true},
		"too few replicas": {make: func(t *testing.T, srv *redisserver.Server) { must(t, srv, "CONFIG", "SET", "min-replicas-to-write", 1) },
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
			m := locker(t, srv.Addr(), &holdfast.Config{Observer: observer(func(e holdfast.Event) {
				if e.Kind == holdfast.EventRetried {
					(*giveUp.Load())()
				}
			})}, test.client).Mutex("n")
			judge := func(op string, ask func(context.Context) (*holdfast.Lease, error)) (err error) {
				t.Helper()
				var failure *holdfast.StoreError
				eventually(t, "an answer", func() bool { // who stands still for a moment gives none
					ctx, cancel := context.WithCancel(within(t, patience))
					defer cancel()
					giveUp.Store(&cancel)
					failure = nil
					_, err = ask(ctx)
					return !errors.As(err, &failure) || failure.Applied != holdfast.AppliedUnknown
				})
				if failure == nil {
					t.Fatalf("%s: got %v", op, err)
				}
				if failure.Kind != test.kind || failure.Applied != holdfast.NotApplied || failure.Name != "n" || failure.Op == "" ||
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
				if v := must(t, srv, "DBSIZE"); v != int64(0) {
					t.Errorf("%v keys left", v)
				}
			}
		})
	}
}

// Trap 22: a wait that ended says why it was in vain, and not that the last answer, for which there was no time left, did
// not come: a connection's deadline is at times ahead of that of the context which it comes from.
func TestRefusedUntilTheEnd(t *testing.T) {
	t.Parallel()
	srv, p := proxied(t)
	must(t, srv, "REPLICAOF", "127.0.0.1", "1")
	var refusals atomic.Int32
	m := locker(t, p.Addr(), &holdfast.Config{Observer: observer(func(e holdfast.Event) {
		if failure := (*holdfast.StoreError)(nil); e.Kind == holdfast.EventRetried && errors.As(e.Err, &failure) && failure.Kind == holdfast.StoreReadOnly {
			refusals.Add(1)
		}
	})}).Mutex("n")
	for shown := 0; shown < 12; {
		before := refusals.Load()
		waiter := claim(within(t, 500*time.Millisecond), m)
		eventually(t, "it is refused, or over before", func() bool { return refusals.Load() > before || waiter.over() })
		if refusals.Load() == before {
			continue // the machine stood still for so long that nothing was heard
		}
		shown++
		held := p.HoldAnswer("READONLY")
		signalled(t, "Lock returns", waiter.done)
		held.Pass()
		p.Disarm()
		var failure *holdfast.StoreError
		if !errors.As(waiter.err, &failure) || failure.Kind != holdfast.StoreReadOnly || !errors.Is(waiter.err, context.DeadlineExceeded) {
			t.Fatalf("got %v", waiter.err)
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
		must(t, srv, args...)
	}
}

// full makes a server refuse what takes memory.
func full(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	must(t, srv, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	must(t, srv, "CONFIG", "SET", "maxmemory", 1)
}

// roomy ends that.
func roomy(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	must(t, srv, "CONFIG", "SET", "maxmemory", 0)
}

// unsaved makes a server fail to save, so that it refuses writes. A directory is where its file should go.
func unsaved(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(srv.Dir(), "taken", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	must(t, srv, "CONFIG", "SET", "save", "3600 1")
	must(t, srv, "BGSAVE")
	eventually(t, "saving fails", func() bool {
		return strings.Contains(must(t, srv, "INFO", "persistence").(string), "rdb_last_bgsave_status:err")
	})
}

// saved ends that.
func saved(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	must(t, srv, "CONFIG", "SET", "save", "")
	if err := os.RemoveAll(filepath.Join(srv.Dir(), "taken")); err != nil {
		t.Fatal(err)
	}
	must(t, srv, "BGSAVE")
	eventually(t, "saving works", func() bool {
		return strings.Contains(must(t, srv, "INFO", "persistence").(string), "rdb_last_bgsave_status:ok")
	})
}

// A server without memory, or that cannot persist, is waited for as one that loads: a Lock outlasts
// it, a release is tried again, and only who asks once is refused.
func TestLockOutlastsRefusal(t *testing.T) {
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
			client := locker(t, srv.Addr(), &holdfast.Config{TTL: time.Minute, ReleaseTimeout: patience, Observer: observer(func(e holdfast.Event) {
				if failure := (*holdfast.StoreError)(nil); e.Kind == holdfast.EventRetried && errors.As(e.Err, &failure) && failure.Kind == c.kind {
					mu.Lock()
					defer mu.Unlock()
					again[e.Name]++
				}
			})})
			held, released := lock(t, client.Mutex("held")), make(chan error, 1)
			c.refuse(t, srv)
			go func() { released <- held.Release(within(t, patience)) }()
			eventually(t, "TryLock is refused", func() bool { // who stands still for a moment gets no answer
				var failure *holdfast.StoreError
				_, err := client.Mutex("once").TryLock(within(t, patience))
				return errors.As(err, &failure) && failure.Kind == c.kind && failure.Applied == holdfast.NotApplied
			})
			ctx := within(t, patience)
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
			eventually(t, "all were refused, and ask again", func() bool {
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
					release(t, out.lease)
				}
			}
		})
	}
}

// Trap 22: busy is busy, in one round trip, and a wait that ends is no "busy".
func TestBusyIsBusy(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	lease := lock(t, locker(t, srv.Addr(), nil).Mutex("n", holdfast.WithLabel("me")))
	ctx, giveUp := context.WithCancel(within(t, patience))
	defer giveUp()
	m := locker(t, srv.Addr(), &holdfast.Config{TTL: time.Minute, Observer: observer(func(e holdfast.Event) {
		if e.Kind == holdfast.EventWaiting {
			giveUp()
		}
	})}).Mutex("n")
	err := answered(t, func() error { return given(m.TryLock(within(t, patience))) })
	var busy *holdfast.HeldError
	if !errors.As(err, &busy) || !errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUnavailable) || busy.Holder != "me" {
		t.Errorf("got %#v", err)
	}
	_, err = m.Lock(ctx)
	if !errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	release(t, lease)
	gone(t, srv, "n", patience) // who gave up may be handed it before it has left
}

// Trap 28: a server that reads its data is loading, and a Lock that waits gets in when it has.
func TestLoading(t *testing.T) {
	t.Parallel()
	slow := []string{"--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"}
	if srv, err := redisserver.Run(t.Context(), slow...); err != nil {
		t.Skip("this server cannot be made to load slowly: ", err)
	} else {
		_ = srv.Close()
	}
	srv := redisserver.Start(t, slow...)
	for i := range 1500 {
		must(t, srv, "SET", fmt.Sprint("filler", i), strings.Repeat("x", 1024))
	}
	must(t, srv, "SAVE")
	m := locker(t, srv.Addr(), nil).Mutex("n")
	srv.Kill() // so that nobody gets in before it loads
	restarted := make(chan error, 1)
	go func() { restarted <- srv.Restart() }()
	seen := false
	eventually(t, "an answer", func() bool {
		lease, err := m.TryLock(within(t, patience))
		var failure *holdfast.StoreError
		if errors.As(err, &failure) && failure.Kind == holdfast.StoreLoading && failure.Applied == holdfast.NotApplied {
			seen = true
		}
		if err == nil {
			release(t, lease)
		}
		return seen || err == nil
	})
	lease := lock(t, m)
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	release(t, lease)
	if !seen {
		t.Skip("it was loaded too quickly to be seen")
	}
}

// Trap 41: out of memory, a release must work, also one that hands on; and who joins waits for a
// place.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	seen := new(events)
	var refused atomic.Int32
	c := locker(t, srv.Addr(), &holdfast.Config{TTL: 6 * time.Second, Observer: seen})
	other := locker(t, srv.Addr(), &holdfast.Config{Observer: observer(func(e holdfast.Event) {
		if e.Kind == holdfast.EventRetried {
			refused.Add(1)
		}
	})})
	alone, held := lock(t, c.Mutex("alone")), lock(t, c.Mutex("held"))
	contended := lock(t, c.Mutex("contended"))
	next := claim(within(t, patience), other.Mutex("contended"))
	waiting(t, srv, "contended", 1)
	full(t, srv)

	release(t, alone)
	free(t, srv, "alone")
	release(t, contended)
	handBack(t, next.got(t))
	gone(t, srv, "contended", patience)

	joining := claim(within(t, patience), other.Mutex("held"))
	eventually(t, "refused or in line", func() bool { return refused.Load() > 0 || inLine(srv, "held") == 1 })
	before := seen.count(holdfast.EventRenewed)
	eventually(t, "a renewal", func() bool { return seen.count(holdfast.EventRenewed) > before })
	if err := checked(t, held); err != nil {
		t.Errorf("the holder: %v", err)
	}
	release(t, held)
	roomy(t, srv)
	handBack(t, joining.got(t))
	gone(t, srv, "held", patience)
	if n := must(t, srv, "DBSIZE"); n.(int64) > 3 { // clocks
		t.Errorf("%v keys left", n)
	}
}
