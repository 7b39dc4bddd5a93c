package holdfast_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// The question before the first request has a time of its own, which is no part of a short TTL. If
// it gets no answer, nothing is sent, and the error says so.
func TestFirstQuestionIsNoPartOfTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 300 * time.Millisecond
		w := newWorld(t)
		client, sent := w.client()
		away := &protocol.Failure{Op: "lock", Name: "n", Reason: protocol.Unreachable, Err: errors.New("no route")}
		sent.ready = func() error { return away }
		m, all := client.Mutex("n", holdfast.WithTTL(ttl), holdfast.WithoutRenewal()), client.All([]string{"a", "b"}, holdfast.WithTTL(ttl), holdfast.WithoutRenewal())
		for name, try := range map[string]func() error{
			"one": func() error { _, err := m.TryLock(t.Context()); return err },
			"all": func() error { _, err := all.TryLock(t.Context()); return err },
		} {
			var failure *holdfast.StoreError
			if err := try(); !errors.As(err, &failure) || failure.MayHaveApplied || sent.asks.Load() != 0 {
				t.Errorf("%s: %d asked: %v", name, sent.asks.Load(), err)
			}
		}
		sent.ready = func() error { <-time.After(ttl); return nil }
		for name, take := range map[string]func() *holdfast.Lease{
			"one": func() *holdfast.Lease { return w.must(m.TryLock(t.Context())) },
			"all": func() *holdfast.Lease { return w.must(all.TryLock(t.Context())) },
		} {
			lease := take()
			if left := time.Until(lease.Until()); left < ttl*9/10 {
				t.Errorf("%s: %v of trust left", name, left)
			}
			w.release(lease)
		}
	})
}
