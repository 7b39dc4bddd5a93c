package clock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// Trap 35: an acquire that reaches the server after its sender gave up does nothing: it neither
// holds nor joins the queue.
func TestMutexLateAcquireDoesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		known bool // the client has heard the server's time before
		held  bool
		lock  func(*holdfast.Mutex, context.Context) (*holdfast.Lease, error)
	}{
		"TryLock":            {true, false, (*holdfast.Mutex).TryLock},
		"TryLock, the first": {false, false, (*holdfast.Mutex).TryLock},
		"Lock":               {true, false, (*holdfast.Mutex).Lock},
		"Lock, held":         {true, true, (*holdfast.Mutex).Lock},
		"Lock, the first":    {false, true, (*holdfast.Mutex).Lock},
	} {
		runPlay(t, name, func(t *testing.T, s *scene) {
			a, b := s.actor("a"), s.actor("b")
			if test.known {
				s.release(s.lock(a, "other"))
			}
			if test.held {
				s.lock(b, "n")
			}
			began := time.Now()
			a.Strike(network.Rule{Match: network.Contains(s.script("ask")), Times: 10, Do: network.Delay,
				Late: 1100 * time.Millisecond})
			// its cleaning up does not help
			a.Strike(network.Rule{Match: network.Contains(s.script("free")), Times: 100})
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			defer cancel()
			if lease, err := test.lock(a.Mutex("n"), ctx); err == nil {
				t.Fatalf("got a lease %v", lease.Token())
			}
			if took := time.Since(began); took > 900*time.Millisecond {
				t.Errorf("gave up after %v", took)
			}
			sleep(2 * time.Second)
			if n := len(s.commands(a, began, "ask")); n == 0 {
				t.Fatal("the request did not arrive, so this test shows nothing")
			}
			if s.rdb.Exists(t.Context(), key("n")).Val() != 0 && !test.held {
				t.Errorf("it took effect: the key has %v left", s.remainingTTL("n"))
			}
			if kind := s.rdb.Type(t.Context(), key("n")).Val(); test.held && kind != "string" {
				t.Errorf("it joined the queue: the key is a %s", kind)
			}
		})
	}
}
