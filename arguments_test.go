package holdfast_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
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
