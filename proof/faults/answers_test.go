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
	other := b.Client(t, holdfast.Config{}, nil)
	var mu sync.Mutex
	lost, wrong := map[string]int{}, 0
	var all sync.WaitGroup
	for i := range workers {
		victim, w := b.Proxied(t, holdfast.Config{})
		all.Go(func() {
			for n := range rounds {
				for _, op := range names {
					v := &victimOf{b: b, w: w, victim: victim, other: other, name: fmt.Sprintf("%s %d %d", op, i, n)}
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
	armed         []<-chan struct{}
	lost          int // operations: 0 or 1
}

// runOne does it, and says what was wrong.
func (v *victimOf) runOne(t *testing.T, operation func(context.Context, *victimOf) error) error {
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	// So that the connections to who serves the name are there.
	lease, err := v.victim.Mutex(v.name + "!").Lock(ctx)
	if err == nil {
		err = lease.Release()
	}
	if err == nil {
		err = v.isFree(ctx, v.name)
	}
	if err != nil {
		return err
	}
	return operation(ctx, v)
}

// loseAnswers loses the next answer of each master.
func (v *victimOf) loseAnswers() {
	v.w.Each(func(addr string, p *fault.Proxy) { v.armed = append(v.armed, p.DropAnswer("EVAL")) })
}

// endLosses ends that, and counts.
func (v *victimOf) endLosses() {
	v.w.Each(func(_ string, p *fault.Proxy) { p.Disarm() })
	for _, lost := range v.armed {
		select {
		case <-lost:
			v.lost = 1
		default:
		}
	}
	v.armed = nil
}

// withoutAnswer does something whose answer is lost.
func (v *victimOf) withoutAnswer(f func() error) error {
	v.loseAnswers()
	defer v.endLosses()
	return f()
}

// awaitLoss waits until an answer was lost, of what is done in the background.
func (v *victimOf) awaitLoss(ctx context.Context) error {
	for {
		for _, lost := range v.armed {
			select {
			case <-lost:
				return nil
			default:
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("no answer was lost")
		case <-time.After(time.Millisecond):
		}
	}
}

// isFree reports whether somebody else gets in, with a lock of whatever kind, long before a TTL is
// over.
func (v *victimOf) isFree(ctx context.Context, name string) error {
	const limit = 8 * time.Second
	for end := time.Now().Add(limit); ; pause(5 * time.Millisecond) {
		lease, err := v.other.Mutex(name).TryLock(ctx)
		if err == nil {
			return lease.Release()
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("it is not free after %v: %w", limit, err)
		}
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

// isHeld reports whether others are kept out, as one of them is answered.
func isHeld(ctx context.Context, try try) error {
	_, err := try(ctx)
	for isUnanswered(err) && ctx.Err() == nil {
		_, err = try(ctx)
	}
	if !errors.Is(err, holdfast.ErrHeld) {
		return fmt.Errorf("another was answered %w, not that it is held", orNilError(err))
	}
	return nil
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

func orNilError(err error) error {
	if err == nil {
		return errors.New("nil")
	}
	return err
}

// checkAndRelease checks and releases a lease.
func checkAndRelease(ctx context.Context, lease *holdfast.Lease) error {
	return errors.Join(lease.Err(), askUntilAnswered(ctx, lease.Check), lease.Release())
}

// releaseHandedOver does the same with one that was handed over after the moment since. It is
// trusted for half of a claim at least, and not for much longer: who stands still for as long may
// lose it, or give it back without an answer.
func releaseHandedOver(ctx context.Context, lease *holdfast.Lease, since time.Time) error {
	const claim = 500 * time.Millisecond
	err := checkAndRelease(ctx, lease)
	if isOutlasted(err) && time.Since(since) > claim/2 {
		return nil
	}
	return err
}

// isOutlasted reports whether that is what becomes of a lease whose process stands still for longer
// than it is trusted.
func isOutlasted(err error) bool {
	return errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrUncertain)
}

// isUnknown returns what a try is told.
func isUnknown(lease *holdfast.Lease, err error) error {
	if err == nil { // of a harness.Quorum, as many answered as it takes
		return lease.Release()
	}
	var failure *holdfast.StoreError
	if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrHeld) ||
		errors.As(err, &failure) && !failure.MayHaveApplied {
		return fmt.Errorf("the try was answered %w", err)
	}
	return nil
}
