package engine

import (
	"context"
	"slices"
	"time"
)

// A HoldStack says which call took a hold of this process, of the lease that lasts longest.
type HoldStack struct {
	Token  int64
	Began  time.Time // when that lease did
	Leases int       // how many this process has on the hold
	Frames []uintptr // for runtime.CallersFrames, with those of the library
}

// Stacks returns the stacks of the holds of a name that this client trusts, at most so many. There
// are none without Config.Answer.
func (e *Engine) Stacks(name string, most int) (out []HoldStack) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.holds.entries {
		if h.lock.name != name || !h.isLive() || h.tenure == nil || isPast(h.end(), time.Now()) {
			continue
		}
		leases := make(map[*Lease]bool)
		var oldest *Lease
		for _, entry := range h.tenure.entries {
			l := entry.head()
			if l.slow == nil {
				continue
			}
			leases[l] = true
			if oldest == nil || l.toldAt().Before(oldest.toldAt()) {
				oldest = l
			}
		}
		if oldest == nil {
			continue
		}
		out = append(out, HoldStack{Token: h.tenure.token, Began: oldest.toldAt(), Leases: len(leases),
			Frames: slices.Clone(oldest.slow.frames[:oldest.slow.depth])})
		if len(out) == most {
			break
		}
	}
	return out
}

// beginAnswering has questions answered, if they are to be and are not yet. The engine's mutex is
// held.
func (e *Engine) beginAnswering() {
	if e.config.Answer == nil || e.answering || e.closed {
		return
	}
	e.answering = true
	e.busy.Add(1)
	e.mu.after(func() { go e.answerWhileHolding() })
}

// answerWhileHolding has questions answered until there is no hold, or the engine ends.
func (e *Engine) answerWhileHolding() {
	defer e.busy.Done()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { e.config.Answer(ctx); close(ended) }()
	for e.pause(ctx, linger) && e.goesOnAnswering() {
	}
	cancel()
	<-ended
}

// goesOnAnswering reports whether there is a hold. The next one begins anew otherwise.
func (e *Engine) goesOnAnswering() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answering = len(e.holds.entries) > 0
	return e.answering
}
