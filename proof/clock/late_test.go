package clock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/store"
)

// A sluggard is a store that hands answers over late, once, as one whose process stood still: past
// every deadline.
type sluggard struct {
	store.Store
	s     *scene
	op    string
	delay time.Duration
}

func (l *sluggard) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	replies := l.Store.Do(ctx, node, commands)
	if len(commands[0]) > 1 && l.delay > 0 && commands[0][1] == l.s.script(l.op) {
		delay := l.delay
		l.delay = 0
		<-time.After(delay)
	}
	return replies
}

func (s *scene) sluggish(name, op string) (*actor, *sluggard) {
	slow := &sluggard{s: s, op: op}
	return s.actorOn(name, func(st store.Store) store.Store { slow.Store = st; return slow }), slow
}

// Trap 3: the answer to an acquire that comes when its trust is over is no lease: the server is
// asked again.
func TestMutexLockAnswerTooLateIsNoLease(t *testing.T) {
	for name, test := range map[string]struct {
		delay time.Duration
		trust time.Duration // after the answer; 0: asked again
		other bool          // has it by then
	}{
		"in time":                   {14 * time.Second, 845 * time.Millisecond, false},
		"when trust is over":        {14845 * time.Millisecond, 0, false},
		"when the key is gone":      {20 * time.Second, 0, false},
		"when another has it":       {20 * time.Second, 0, true},
		"when trust is almost over": {14844 * time.Millisecond, time.Millisecond, false},
		"long after":                {50 * time.Minute, 0, false},
		"long after, another's now": {50 * time.Minute, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, slow := s.sluggish("a", "ask")
				b := s.actor("b")
				slow.delay = test.delay
				began := time.Now()
				waiter := make(chan got, 1)
				go func() { // without an end, so that the caller carries the request itself
					lease, err := a.Mutex("n", holdfast.WithoutRenewal()).Lock(context.Background())
					waiter <- got{lease, err, time.Now()}
				}()
				pass(16 * time.Second)
				if test.other {
					other := s.lock(b, "n")
					until(began.Add(test.delay + 5*time.Second))
					s.release(other)
					began = time.Now().Add(-test.delay)
				}
				g := s.take(waiter)
				if g.err != nil {
					t.Fatal(g.err)
				}
				trust := test.trust
				if trust == 0 {
					trust = 15*time.Second - margin(15*time.Second)
				}
				if got := g.lease.Until(); !got.Equal(began.Add(test.delay + trust)) {
					t.Errorf("trusted for %v after the answer, want %v", got.Sub(began)-test.delay, trust)
				}
			})
		})
	}
}

// The answer to a renewal gives trust from its sending, and one that comes when trust is over
// brings nothing back.
func TestLeaseRenewalAnswerTooLateRevivesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		delay time.Duration // of the answer to the renewal at 5 s
		end   time.Duration // when trust ends, with a network that is silent from then on
	}{
		"at once":            {0, 19845 * time.Millisecond},
		"slow":               {800 * time.Millisecond, 19845 * time.Millisecond},
		"just in time":       {9844 * time.Millisecond, 19845 * time.Millisecond},
		"when trust is over": {9845 * time.Millisecond, 14845 * time.Millisecond},
		"after that":         {12 * time.Second, 14845 * time.Millisecond},
		"long after":         {5 * time.Hour, 14845 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, slow := s.sluggish("a", "renew")
				slow.delay = test.delay
				granted := time.Now()
				lease := s.lock(a, "n")
				pass(5 * time.Second)
				a.silence()
				end := lost(t, lease, holdfast.LossExpired)
				if took := end.Sub(granted); took != test.end {
					t.Errorf("ended after %v, want %v", took, test.end)
				}
				until(granted.Add(6 * time.Hour))
				lost(t, lease, holdfast.LossExpired)
			})
		})
	}
}
