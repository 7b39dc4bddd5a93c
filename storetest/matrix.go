package storetest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// A scene is a row of the sharing matrix. It shows which holders may enter beside which, in which
// order, after which release or expiry. Each step is of an actor with a client of its own. The step
// says how the actor wishes to hold: r reads, w writes, a number is of permits.
//
//	+a r   a must get in at once        #a r   a tries, and is told that others hold
//	?a r   a has to wait                ~a r   a gets in and does nothing more: its TTL runs out
//	=a     a is in                      !a     a still waits
//	-a     a releases                   <a     a gives up waiting
//	va     a downgrades                 *a     a has lost its lease
//	=3     the name has 3 permits from now on
type scene struct {
	name  string
	steps string
	needs needs
}

// fixed is the TTL of an actor that does nothing more in a scene. It is long enough for the steps
// before it is over, even if the machine stands still for a second.
const fixed = 1600 * time.Millisecond

// A stage plays a scene.
type stage struct {
	*env
	permits int64 // 0: an RWMutex
	actors  map[string]*actor
}

type actor struct {
	*client
	lease  *holdfast.Lease
	gone   *holdfast.Lease // to run out
	waits  *waiter
	cancel context.CancelFunc
}

// play makes a case of each scene.
func play(permits int64, scenes []scene) (tests []test) {
	for _, scene := range scenes {
		tests = append(tests, test{scene.name, func(e *env) {
			s := &stage{env: e, permits: permits, actors: map[string]*actor{}}
			if strings.Contains(scene.steps, "~") {
				s.warm(scene.steps) // slow work is over before a hold begins that runs out
			}
			for step := range strings.SplitSeq(scene.steps, ", ") {
				s.step(step)
			}
			for who, a := range s.actors {
				if a.waits != nil {
					e.Errorf("the scene ends, and %s waits", who)
				}
				if a.lease != nil {
					e.release(a.lease)
				}
			}
		}, scene.needs})
	}
	return tests
}

// warm lets every actor make its connections, also those for messages.
func (s *stage) warm(steps string) {
	stove := s.client()
	for step := range strings.SplitSeq(steps, ", ") {
		who, _, _ := strings.Cut(step[1:], " ")
		if _, err := strconv.ParseInt(who, 10, 64); err == nil || s.actors[who] != nil {
			continue
		}
		a := &actor{client: s.client(label(who))}
		s.actors[who] = a
		lease := s.lock(stove.Mutex("warm"))
		w := s.startWaiting(s.ctx(), a.client, a.Mutex("warm").Lock)
		s.release(lease)
		s.release(w.await())
	}
}

func (s *stage) step(step string) {
	s.Helper()
	op, rest := step[:1], step[1:]
	if n, err := strconv.ParseInt(rest, 10, 64); op == "=" && err == nil {
		if err := s.resize(s.client().Semaphore(name, n), n); err != nil {
			s.Fatalf("%s: %v", step, err)
		}
		s.permits = n
		return
	}
	who, mode, _ := strings.Cut(rest, " ")
	a := s.actors[who]
	if a == nil {
		a = &actor{client: s.client(label(who))}
		s.actors[who] = a
	}
	var options []holdfast.Option
	if op == "~" {
		options = []holdfast.Option{holdfast.WithTTL(fixed), holdfast.WithoutRenewal()}
	}
	wait, try := s.method(a, mode, options)
	switch op {
	case "+", "~":
		lease, err := s.lockWhenFree(try)
		for end := time.Now().Add(fixed); s.heldByGone(err) && time.Now().Before(end); {
			<-time.After(fixed / 32) // the request was on its way for that long: trust is counted from its sending
			lease, err = s.lockWhenFree(try)
		}
		if err != nil {
			s.Fatalf("%s: %v", step, err)
		}
		if op == "~" {
			a.gone = lease
		} else {
			a.lease = lease
		}
	case "#":
		lease, err := s.lockUntilAnswered(try)
		if lease != nil {
			s.Fatalf("%s: he is in", step)
		}
		s.checkIs(err, holdfast.ErrHeld)
	case "?":
		ctx, cancel := context.WithCancel(s.ctx())
		s.Cleanup(cancel)
		a.waits, a.cancel = s.startWaiting(ctx, a.client, wait), cancel
	case "=":
		a.lease, a.waits = a.waits.await(), nil
	case "!":
		if a.waits.hasReturned() {
			s.Fatalf("%s: he is in, or gave up: %v", step, a.waits.err)
		}
	case "-":
		s.release(a.lease)
		a.lease = nil
	case "<":
		a.cancel()
		a.waits.awaitGiveUp(context.Canceled)
		a.waits = nil
	case "v":
		if err := a.lease.Downgrade(s.ctx()); err != nil {
			s.Fatalf("%s: %v", step, err)
		}
	case "*":
		s.checkLost(s.awaitEnd(leased.Context(a.gone)), holdfast.LossExpired)
		<-time.After(fixed / 32) // trust ends a margin before the hold does
	default:
		s.Fatalf("no step %q", step)
	}
}

// heldByGone reports whether an actor whose lease has run out still holds.
func (s *stage) heldByGone(err error) bool {
	var held *holdfast.HeldError
	if !errors.As(err, &held) {
		return false
	}
	a := s.actors[held.Holder]
	return a != nil && a.gone != nil && a.lease == nil && a.gone.Err() != nil
}

func (s *stage) method(a *actor, mode string, options []holdfast.Option) (wait, try lockFunc) {
	if s.permits == 0 {
		m := a.RWMutex(name, options...)
		if mode == "r" {
			return m.RLock, m.TryRLock
		}
		return m.Lock, m.TryLock
	}
	n, _ := strconv.ParseInt(mode, 10, 64)
	m := a.Semaphore(name, s.permits, options...)
	return func(ctx context.Context) (*holdfast.Lease, error) { return m.Acquire(ctx, n) },
		func(ctx context.Context) (*holdfast.Lease, error) { return m.TryAcquire(ctx, n) }
}

func readWriteMatrix() []test {
	return play(0, []scene{
		{"readers share", "+a r, +b r, +c r, -a, +a r, -b", 0},
		{"a writer is alone", "+a w, #b w, #b r, -a, +b w", 0},
		{"a reader keeps writers out", "+a r, #b w, +b r, -a, #c w, -b, +c w", 0},
		{"a writer waits for a writer", "+a w, ?b w, -a, =b", 0},
		{"a writer waits for all readers", "+a r, +b r, ?c w, -a, !c, -b, =c", 0},
		{"readers that stand together enter together", "+a w, ?b r, ?c r, ?d r, -a, =b, =c, =d", 0},
		{"no reader passes a writer that waits", "+a r, ?b w, #c r, ?d r, -a, =b, !d, -b, =d", queue},
		{"readers and writers in turn",
			"+a w, ?b r, ?c w, ?d r, ?e w, -a, =b, !c, !d, -b, =c, !d, !e, -c, =d, !e, -d, =e", queue},
		{"readers enter up to the next writer",
			"+a w, ?b r, ?c r, ?d w, ?e r, -a, =b, =c, !d, !e, -b, !d, -c, =d, !e, -d, =e", queue},
		{"a writer that gives up lets readers by", "+a r, ?b w, ?c r, ?d r, <b, =c, =d", queue},
		{"a writer that gives up before it is let in", "+a w, ?b w, ?c r, ?d w, <b, -a, =c, !d, -c, =d", queue},
		{"a reader that gives up", "+a w, ?b r, ?c w, <b, -a, =c", queue},
		// Trap 23: each reader has a time of its own.
		{"one of many readers runs out alone", "+a r, ~b r, +c r, *b, #d w, +d r, -a, -c, #e w, -d, +e w", 0},
		{"a writer does not wait for a reader that is gone", "~a r, ?b w, =b, *a", 0},
		{"a reader that is gone does not decide for the others", "~a r, +b r, ?c w, *a, !c, -b, =c", 0},
		{"a reader that stays does not keep the writer from those who are gone", "+a r, ~b r, ?c w, -a, =c, *b", 0},
		{"a writer that is gone lets all readers in", "~a w, ?b r, ?c r, =b, =c, *a", 0},
		{"what is in order stays so after an expiry", "~a w, ?b w, ?c r, ?d r, =b, !c, -b, =c, =d", queue},
		{"a downgrade lets readers in", "+a w, ?b r, va, =b, #c w, +c r, -a, -b, -c, +d w", 0}, // trap 24
		{"a downgrade lets in up to the next writer",
			"+a w, ?b r, ?c r, ?d w, ?e r, va, =b, =c, !d, !e, -b, -c, !d, -a, =d, !e, -d, =e", queue},
		{"a downgrade passes no writer", "+a w, ?b w, ?c r, va, !b, !c, #d r, -a, =b, !c, -b, =c", queue},
		{"a downgraded lease is like a reader's", "+a w, va, +b r, ?c w, -b, !c, -a, =c", 0},
	})
}

func permitMatrix() []test {
	return play(3, []scene{
		{"as many as there are permits", "+a 1, +b 1, +c 1, #d 1, -b, +d 1", 0},
		{"by weight", "+a 2, #b 2, +b 1, #c 1, -a, +c 2", 0},
		{"all of them", "+a 3, #b 1, -a, +b 1, #c 3, +c 2", 0},
		{"waiting for enough", "+a 2, +b 1, ?c 2, -b, !c, -a, =c", 0},
		{"a large request is not passed by small ones", "+a 2, ?b 3, #c 1, ?c 1, -a, =b, !c, -b, =c", queue},
		{"all who fit enter together", "+a 3, ?b 1, ?c 2, ?d 1, -a, =b, =c, !d, -b, =d", queue},
		{"those behind wait with the first that does not fit", "+a 1, +b 2, ?c 2, ?d 1, -a, !c, !d, -b, =c, =d", queue},
		{"who gives up lets the next by", "+a 2, ?b 2, ?c 1, <b, =c", queue},
		{"who gave up is skipped", "+a 3, ?b 3, ?c 2, ?d 1, <b, -a, =c, =d", queue},
		{"permits of one who is gone return", "~a 2, +b 1, ?c 2, =c, *a", 0},
		{"each runs out alone", "~a 1, +b 1, ~c 1, ?d 2, =d, *a, *c, #e 1", 0},
		{"who is gone does not give back twice", "~a 1, +b 2, *a, +c 1, #d 1, -b, -c", 0},
		{"more permits let in who waits", "+a 3, ?b 2, ?c 1, =5, =b, !c, #d 1, =6, =c", queue},
		{"fewer permits leave holders alone", "+a 2, +b 1, =1, #c 1, -a, #c 1, -b, +c 1, #d 1", 0},
		{"fewer permits leave who waits in the queue", "+a 2, ?b 2, ?c 1, =1, !b, -a, =b, !c, -b, =c", queue},
	})
}
