package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Traps 10, 11, 12: the answer is lost after the request took effect, for every operation of every
// type. Each must be told what it did, or that this is not known; others must find the lock as that
// says, and nothing is done twice.
func loseEachAnswer(t *testing.T, b *harness.Deployment) {
	operations := operations(b.Topology == harness.Quorum)
	names := slices.Sorted(maps.Keys(operations))
	const workers = 8
	rounds := times(t)
	other := b.Client(t, holdfast.Config{})
	var mu sync.Mutex
	lost, wrong := map[string]int{}, 0
	var all sync.WaitGroup
	for i := range workers {
		victim, w := b.Proxied(t, 1, holdfast.Config{})
		all.Go(func() {
			for n := range rounds {
				for _, op := range names {
					v := &victimOf{b: b, w: w, victim: victim[0], other: other, name: fmt.Sprintf("%s %d %d", op, i, n)}
					err := v.runOne(t, operations[op])
					mu.Lock()
					lost[op] += v.lost
					if err != nil {
						if wrong++; wrong < 10 {
							t.Errorf("%s: %v", v.name, err)
						}
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	sum, each := 0, []string(nil)
	for _, op := range names {
		sum += lost[op]
		each = append(each, fmt.Sprintf("%s %d", op, lost[op]))
		if lost[op] < workers*rounds*9/10 {
			t.Errorf("%s: only %d answers were lost", op, lost[op])
		}
	}
	t.Logf("%d operations whose answer was lost after they took effect, %d wrong (%s)", sum, wrong,
		strings.Join(each, ", "))
	b.IsClean(t)
}

// A victimOf does one operation whose answer is lost.
type victimOf struct {
	b             *harness.Deployment
	w             *harness.Proxies
	victim, other *holdfast.Client
	name          string
	ctx           context.Context
	armed         []<-chan struct{}
	lost          int // operations: 0 or 1
}

// A mistake is what an operation shows and must not. It is panicked with, and ends the operation.
type mistake struct{ error }

// runOne does an operation, and returns its mistake.
func (v *victimOf) runOne(t *testing.T, operation func(*victimOf)) (err error) {
	var cancel context.CancelFunc
	v.ctx, cancel = context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case mistake:
			err = r.error
		default:
			panic(r)
		}
	}()
	// So that the connections to who serves the name are there.
	v.check(v.got(v.victim.Mutex(v.name + "!").Lock(v.ctx)).Release())
	v.isFree(v.name)
	operation(v)
	return nil
}

func (v *victimOf) check(err error) {
	if err != nil {
		panic(mistake{err})
	}
}

func (v *victimOf) failf(format string, args ...any) { panic(mistake{fmt.Errorf(format, args...)}) }

func (v *victimOf) got(lease *holdfast.Lease, err error) *holdfast.Lease {
	v.check(err)
	return lease
}

// loseAnswers loses the next answer of each master.
func (v *victimOf) loseAnswers() {
	v.w.Each(func(p *fault.Proxy) { v.armed = append(v.armed, p.DropAnswer("EVAL")) })
}

func (v *victimOf) endLosses() {
	v.w.Each((*fault.Proxy).Disarm)
	if v.hasLost() {
		v.lost = 1
	}
	v.armed = nil
}

func (v *victimOf) hasLost() bool {
	return slices.ContainsFunc(v.armed, func(lost <-chan struct{}) bool {
		select {
		case <-lost:
			return true
		default:
			return false
		}
	})
}

// withoutAnswer does something whose answer is lost.
func (v *victimOf) withoutAnswer(f func() error) error {
	v.loseAnswers()
	defer v.endLosses()
	return f()
}

// loseInBackground loses an answer of what is done in the background.
func (v *victimOf) loseInBackground(begin func()) {
	v.loseAnswers()
	defer v.endLosses()
	begin()
	for !v.hasLost() {
		if v.ctx.Err() != nil {
			v.check(errors.New("no answer was lost"))
		}
		pause(time.Millisecond)
	}
}

// takeLost takes something, and the answer is lost.
func (v *victimOf) takeLost(take try) (lease *holdfast.Lease) {
	v.check(v.withoutAnswer(func() (err error) { lease, err = take(v.ctx); return err }))
	return lease
}

// releaseLost gives back without an answer. The release is sent again, and finds nothing: nobody
// knows whether the first request gave back. A majority of a harness.Quorum may know.
func (v *victimOf) releaseLost(release func() error) {
	err := v.withoutAnswer(release)
	if !errors.Is(err, holdfast.ErrUncertain) && (err != nil || v.b.Topology != harness.Quorum) {
		v.failf("a release whose answer was lost: %v", err)
	}
}

// isFree fails unless somebody else gets in, with a lock of whatever kind, long before a TTL is
// over.
func (v *victimOf) isFree(names ...string) {
	const limit = 8 * time.Second
	for _, name := range names {
		for end := time.Now().Add(limit); ; pause(5 * time.Millisecond) {
			lease, err := v.other.Mutex(name).TryLock(v.ctx)
			if err == nil {
				v.check(lease.Release())
				break
			}
			if time.Now().After(end) || v.ctx.Err() != nil {
				v.failf("it is not free after %v: %w", limit, err)
			}
		}
	}
}

// isHeld fails unless others are kept out, as one of them is answered.
func (v *victimOf) isHeld(try try) {
	err := askUntilAnswered(v.ctx, func(ctx context.Context) error { _, err := try(ctx); return err })
	if !errors.Is(err, holdfast.ErrHeld) {
		v.failf("another was answered %v, not that it is held", err)
	}
}

// take returns what the other client gets, as nothing keeps it out.
func (v *victimOf) take(try try) *holdfast.Lease { return v.got(tryUntilGranted(v.ctx, try)) }

func (v *victimOf) checkAndRelease(lease *holdfast.Lease) { v.check(checkAndRelease(v.ctx, lease)) }

// releaseHandedOver does the same with one that was handed over after the moment since. It is
// trusted for half of a claim at least, and not for much longer: who stands still for as long may
// lose it, or give it back without an answer.
func (v *victimOf) releaseHandedOver(lease *holdfast.Lease, since time.Time) {
	const claim = 500 * time.Millisecond
	if err := checkAndRelease(v.ctx, lease); !isOutlasted(err) || time.Since(since) <= claim/2 {
		v.check(err)
	}
}

// A try takes something at once, or is told why not.
type try = func(context.Context) (*holdfast.Lease, error)

// isUnanswered reports whether a request got no answer in its time, as a machine may stand still
// for as long.
func isUnanswered(err error) bool {
	return errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrHeld) &&
		!errors.Is(err, holdfast.ErrLost)
}

// tryUntilGranted returns what one gets that nothing keeps out. A try without an answer may have
// got it, until that is taken back.
func tryUntilGranted(ctx context.Context, try try) (*holdfast.Lease, error) {
	for unsure := false; ; pause(time.Millisecond) {
		lease, err := try(ctx)
		if unsure = unsure || isUnanswered(err); err == nil || !unsure || ctx.Err() != nil || !isUnanswered(err) &&
			!errors.Is(err, holdfast.ErrHeld) {
			return lease, err
		}
	}
}

// askUntilAnswered repeats a question until it is answered.
func askUntilAnswered(ctx context.Context, ask func(context.Context) error) error {
	err := ask(ctx)
	for isUnanswered(err) && ctx.Err() == nil {
		err = ask(ctx)
	}
	return err
}

func checkAndRelease(ctx context.Context, lease *holdfast.Lease) error {
	return errors.Join(lease.Err(), askUntilAnswered(ctx, lease.Check), lease.Release())
}

// isOutlasted reports whether that is what becomes of a lease whose process stands still for longer
// than it is trusted.
func isOutlasted(err error) bool {
	return errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrUncertain)
}
