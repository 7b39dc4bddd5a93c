package holdfast_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/store"
)

// FuzzArguments makes each kind of lock with random arguments. The lock refuses them with an
// *ArgumentError and sends nothing, or it is held for the requested time and given back. Nothing
// panics. Two names, or owners, that differ never meet.
func FuzzArguments(f *testing.F) {
	for _, name := range []string{
		"n", "", "}", "{}", "%7D", "\x00", "\xff\xfe", "a b\r\nc", string(make([]byte, 1024)),
		string(make([]byte, 1025))} {
		f.Add("p", name, "owner", "label", int64(time.Second), int64(0), int64(0), int64(0), 0, int64(1))
		f.Add(name, "n", name, name, int64(100*time.Millisecond), int64(time.Minute), int64(1), int64(time.Millisecond),
			1, int64(3))
	}
	for _, d := range []int64{
		0, -1, 1, 99_999_999, 100_000_001, int64(5 * time.Minute), int64(5*time.Minute) + 1, 1<<63 - 1, -1 << 63} {
		f.Add("p", "n", "", "", d, d, d, d, int(d), d)
		f.Add("p", "n", "", "", int64(time.Second), d, int64(0), int64(0), 0, d)
		f.Add("p", "n", "", "", int64(time.Second), int64(0), d, d, 2, d)
	}
	f.Fuzz(func(t *testing.T, prefix, name, owner, label string, ttl, maxHold, minHold, interval int64, attempts int,
		permits int64) {
		synctest.Test(t, func(t *testing.T) {
			server := memory.New(protocol.Features{Queue: true})
			c, err := holdfast.NewOn(
				server.Connect(prefix), &holdfast.Config{Prefix: prefix, Label: label, TTL: time.Duration(ttl)})
			var bad *holdfast.ArgumentError
			if err != nil {
				if !errors.As(err, &bad) {
					t.Fatalf("New: %v", err)
				}
				if c, err = holdfast.NewOn(server.Connect("p"), nil); err != nil {
					t.Fatal(err)
				}
			}
			defer c.Close()
			options := []holdfast.Option{holdfast.WithTTL(time.Duration(ttl)), holdfast.WithLabel(label)}
			if owner != "" {
				options = append(options, holdfast.WithOwner(owner))
			}
			if maxHold != 0 {
				options = append(options, holdfast.WithMaxHold(time.Duration(maxHold)))
			}
			if minHold != 0 {
				options = append(options, holdfast.WithMinHold(time.Duration(minHold)))
			}
			if interval != 0 {
				options = append(options, holdfast.WithPolling(time.Duration(interval), attempts))
			}
			for kind, try := range tries {
				for _, with := range [][]holdfast.Option{nil, options[:1], options} {
					lease, err := try(c, name, permits, with...)
					judge(t, server, kind, name, time.Duration(ttl), len(with) > 0, lease, err)
					<-time.After(24 * time.Hour) // longer than any min hold
				}
			}
			l := c.Latch(name, options...)
			if err := l.Set(t.Context(), int(permits)); err != nil && !errors.As(err, &bad) {
				t.Errorf("Latch: %v", err)
			}
		})
	})
}

// judge judges what a try returned, with a TTL of its own or without.
func judge(t *testing.T, server *memory.Server, kind, name string, ttl time.Duration, own bool,
	lease *holdfast.Lease, err error) {
	t.Helper()
	var bad *holdfast.ArgumentError
	switch {
	case errors.As(err, &bad):
		if left := server.Names(""); len(left) > 0 {
			t.Errorf("%s: refused with %v, and %q is there", kind, err, left)
		}
	case err != nil:
		t.Errorf("%s: %v", kind, err)
	default:
		if name == "" || len(name) > 1024 || own && (ttl < 100*time.Millisecond || ttl > 5*time.Minute) {
			t.Errorf("%s: %d bytes for %v were taken", kind, len(name), ttl)
		}
		if left := time.Until(lease.Until()); left <= 0 || own && left > ttl {
			t.Errorf("%s: trusted for %v, its TTL is %v", kind, left, ttl)
		}
		if err := lease.Release(); err != nil {
			t.Errorf("%s: Release: %v", kind, err)
		}
	}
}

// refusedArguments returns which arguments an error refuses. Its text names each, and what is
// allowed.
func refusedArguments(t *testing.T, err error) string {
	t.Helper()
	var bad *holdfast.ArgumentError
	if !errors.As(err, &bad) {
		t.Errorf("got %v, want an ArgumentError", err)
		return ""
	}
	var names []string
	for _, p := range bad.Problems {
		names = append(names, p.Argument)
		if p.Allowed == "" || !strings.Contains(err.Error(), p.Argument) || !strings.Contains(err.Error(), p.Allowed) {
			t.Errorf("the text does not name %q and %q: %v", p.Argument, p.Allowed, err)
		}
	}
	return strings.Join(names, ", ")
}

// newAway returns a client whose store must not be used.
func newAway(t *testing.T) *holdfast.Client {
	t.Helper()
	client, err := holdfast.New(away{t: t}, nil)
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

// TestArguments: bad arguments are refused before anything is sent, all at once, by name and value.
func TestArguments(t *testing.T) {
	c, ctx := newAway(t), t.Context()
	long, bad := strings.Repeat("x", 1025), holdfast.WithTTL(1)
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	mutex := func(name string, options ...holdfast.Option) error {
		return errorOf(c.Mutex(name, options...).TryLock)(ctx)
	}
	locked := func(options ...holdfast.Option) error { return mutex("n", options...) }
	permits := func(all, n int64, options ...holdfast.Option) error {
		return with2(c.Semaphore("n", all, options...).Acquire, n)(ctx)
	}
	group := func(names ...string) error { return errorOf(c.All(names, bad).Lock)(ctx) }
	latch := func(options ...holdfast.Option) error { return c.Latch("n", options...).CountDown(ctx) }
	list := func(options holdfast.ListOptions) error {
		return lastErrorOf(with(c.List, options))(ctx)
	}
	ticket := func(keep time.Duration, options ...holdfast.Option) error {
		return with2(c.Mutex("n", options...).Ticket, keep)(ctx)
	}
	for i, test := range []struct {
		err       error
		arguments string
		value     string
	}{
		{mutex(""), "name", `""`},
		{mutex(long), "name", "1025"},
		{locked(holdfast.WithTTL(0)), "WithTTL", "0s"},
		{locked(holdfast.WithTTL(-time.Second)), "WithTTL", "-1s"},
		{locked(holdfast.WithTTL(time.Microsecond)), "WithTTL", "1µs"}, // trap 26
		{locked(holdfast.WithTTL(100*time.Millisecond - 1)), "WithTTL", "99.999999ms"},
		{locked(holdfast.WithTTL(5*time.Minute + 1)), "WithTTL", "5m0.000000001s"},
		{locked(holdfast.WithMaxHold(0)), "WithMaxHold", "0s"},
		{locked(holdfast.WithMaxHold(99 * time.Millisecond)), "WithMaxHold", "99ms"},
		{locked(holdfast.WithMinHold(0)), "WithMinHold", "0s"},
		{locked(holdfast.WithMinHold(-1)), "WithMinHold", "-1ns"},
		{locked(holdfast.WithMinHold(6 * time.Minute)), "WithMinHold", "6m0s"},
		{locked(holdfast.WithMinHold(3*time.Second), holdfast.WithMaxHold(2*time.Second)), "WithMinHold", "3s"},
		{locked(holdfast.WithPolling(0, 1)), "WithPolling interval", "0s"},
		{locked(holdfast.WithPolling(-time.Second, 1)), "WithPolling interval", "-1s"},
		{locked(holdfast.WithPolling(time.Microsecond, 0)), "WithPolling interval", "1µs"},
		{locked(holdfast.WithPolling(time.Second, -1)), "WithPolling attempts", "-1"},
		{locked(holdfast.WithOwner("")), "WithOwner", `""`},
		{locked(holdfast.WithOwner(long)), "WithOwner", "1025"},
		{locked(holdfast.WithLabel(long)), "WithLabel", "1025"},
		{locked(holdfast.WithWait(0)), "WithWait", "0s"},
		{locked(holdfast.WithWait(-time.Second)), "WithWait", "-1s"},
		{mutex("", bad, holdfast.WithOwner(""), holdfast.WithPolling(0, -1)),
			"name, WithTTL, WithPolling interval, WithPolling attempts, WithOwner", ""},
		{permits(0, 1), "permits", "0"},
		{permits(1<<31+1, 1), "permits", "2147483649"},
		{permits(0, 1, bad), "permits, WithTTL", ""},
		{permits(3, 0), "n", "0"},
		{permits(3, 4), "n", "4"},
		{permits(1<<31, 1<<31+1), "n", "2147483649"},
		{c.Semaphore("n", 1).Resize(ctx, 0), "permits", "0"},
		{c.Semaphore("n", 0).Resize(ctx, 1), "permits", "0"},
		{errorOf(c.All(nil).Lock)(ctx), "names", ""},
		{errorOf(c.All(many).Lock)(ctx), "names", "1001"},
		{group("", long), "names, names, WithTTL", ""},
		{latch(holdfast.WithTTL(24*time.Hour + time.Millisecond)), "WithTTL", "24h0m0.001s"},
		{c.Latch("n").Set(ctx, -1), "count", "-1"},
		{c.Latch("n").Set(ctx, 1<<32), "count", "4294967296"},
		{list(holdfast.ListOptions{Pattern: long}), "ListOptions.Pattern", "1025"},
		{list(holdfast.ListOptions{Label: long}), "ListOptions.Label", "1025"},
		{list(holdfast.ListOptions{OlderThan: -1}), "ListOptions.OlderThan", "-1ns"},
		{list(holdfast.ListOptions{Process: "host/"}), "ListOptions.Process", "host/"},
		{list(holdfast.ListOptions{Process: "host/-1"}), "ListOptions.Process", "host/-1"},
		{list(holdfast.ListOptions{Process: "host/1/abc"}), "ListOptions.Process", "host/1/abc"},
		{ticket(0, holdfast.WithoutRenewal()), "lock", ""},
		{ticket(0, holdfast.WithMinHold(time.Second)), "lock", ""},
		{ticket(0, holdfast.WithMaxHold(time.Second)), "lock", ""},
		{ticket(0, holdfast.WithPolling(time.Second, 1)), "lock", ""},
		{ticket(-1), "keep", "-1ns"},
		{ticket(time.Millisecond), "keep", "1ms"},
		{ticket(10*time.Minute + time.Millisecond), "keep", "10m0.001s"},
		{ticket(time.Second + 1), "keep", "1.000000001s"},
		{with2(c.Attach, "no ticket")(ctx), "ticket", ""},
		{c.Break(ctx, "n", 0), "token", "0"},
		{c.ForceBreak(ctx, "n", -1), "token", "-1"},
		{c.Mutex("n").Do(ctx, nil), "fn", ""},
		{c.Election("n").Run(ctx, nil), "fn", ""},
	} {
		if got := refusedArguments(t, test.err); got != test.arguments {
			t.Errorf("%d: refused %q, want %q", i, got, test.arguments)
		}
		if !strings.Contains(fmt.Sprint(test.err), test.value) {
			t.Errorf("%d: the value %s is not named: %v", i, test.value, test.err)
		}
	}
	r := &rig{Client: c, options: []holdfast.Option{bad}}
	for name, call := range r.calls() {
		kind, method, _ := strings.Cut(name, ".")
		if kind == "Client" || kind == "Lease" || kind == "Latch" || strings.HasSuffix(method, "icket") ||
			strings.HasPrefix(method, "Resize") {
			continue
		}
		if got := refusedArguments(t, call.do(ctx)); got != "WithTTL" {
			t.Errorf("%s: refused %q", name, got)
		}
	}
}

// TestConfig: a bad field is refused by name.
func TestConfig(t *testing.T) {
	long := strings.Repeat("x", 1025)
	var none *away
	for i, test := range []struct {
		store     store.Store
		config    holdfast.Config
		arguments string
	}{
		{away{t: t}, holdfast.Config{TTL: 99 * time.Millisecond}, "Config.TTL"},
		{away{t: t}, holdfast.Config{TTL: -1}, "Config.TTL"},
		{away{t: t}, holdfast.Config{TTL: 6 * time.Minute}, "Config.TTL"},
		{away{t: t}, holdfast.Config{TTL: time.Minute, MaxTTL: time.Second}, "Config.TTL"},
		{away{t: t}, holdfast.Config{MaxTTL: 24*time.Hour + 1}, "Config.MaxTTL"},
		{away{t: t}, holdfast.Config{ReleaseTimeout: -1}, "Config.ReleaseTimeout"},
		{away{t: t}, holdfast.Config{ReleaseTimeout: time.Microsecond}, "Config.ReleaseTimeout"},
		{away{t: t}, holdfast.Config{Prefix: "a{b"}, "Config.Prefix"},
		{away{t: t}, holdfast.Config{Prefix: "a}b"}, "Config.Prefix"},
		{away{t: t}, holdfast.Config{Prefix: long}, "Config.Prefix"},
		{away{t: t}, holdfast.Config{Label: long}, "Config.Label"},
		{away{t: t}, holdfast.Config{Wait: -time.Second}, "Config.Wait"},
		{away{t: t}, holdfast.Config{History: -1}, "Config.History"},
		{away{t: t}, holdfast.Config{History: 1_000_001}, "Config.History"},
		{nil, holdfast.Config{}, "store"},
		{none, holdfast.Config{TTL: -1}, "store, Config.TTL"},
	} {
		client, err := holdfast.New(test.store, &test.config)
		if got := refusedArguments(t, err); got != test.arguments || client != nil {
			t.Errorf("%d: refused %q, want %q, and made %v", i, got, test.arguments, client)
		}
	}
}

// TestNoContextNoClientClosed: each call refuses a nil context, a handle that nobody made, and a
// client that is closed.
func TestNoContextNoClientClosed(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		r := newRig(w, client)
		for name, call := range r.calls() {
			if got := refusedArguments(t, call.do(nil)); got != "ctx" {
				t.Errorf("%s without a context: refused %q", name, got)
			}
		}
		for _, none := range []*holdfast.Client{nil, new(holdfast.Client)} {
			for name, call := range (&rig{Client: none}).calls() {
				kind, _, _ := strings.Cut(name, ".")
				err := call.do(t.Context())
				switch {
				case kind == "Lease":
					if !errors.Is(err, holdfast.ErrNotHeld) {
						t.Errorf("%s of none: %v", name, err)
					}
				case kind == "Group":
					kind = "All"
					fallthrough
				default:
					if got := refusedArguments(t, err); got != kind {
						t.Errorf("%s without a client: refused %q", name, got)
					}
				}
			}
		}
		before := r.calls()
		must(t, client.Close())
		for _, calls := range []map[string]ctxCall{before, r.calls()} { // of handles from before, and of new ones
			for name, call := range calls {
				if err := call.do(t.Context()); !errors.Is(err, holdfast.ErrClosed) {
					t.Errorf("%s after Close: %v", name, err)
				}
			}
		}
	})
}
