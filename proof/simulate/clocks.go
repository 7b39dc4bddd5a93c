package simulate

import (
	"math"
	"slices"
	"strings"
	"time"
)

// The clock of a server shows any time from 1970 on, until 2200: tokens are below 2^53, which are
// the microseconds until 2255.
var (
	earliest = time.Unix(60, 0) // a clock that runs slower is half a minute behind at the end of a run
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

const (
	// leap is the least step of a clock that is not a small one. It is longer than a run, so that
	// what was made before a leap back ends, by the server's clock, later than all that was made
	// since.
	leap = 2 * runLength
	// maxSetBack is how long a clock stays set back after a leap.
	maxSetBack = 6 * time.Minute
	// minVisibleStep is the least step forward of a master that nobody can overlook: a hundredth of
	// a run is less.
	minVisibleStep = 2 * time.Minute
	// recountTime is after which time a master that forgot counts again.
	recountTime = 25 * time.Second
	// claim is what a hand-over to a dead waiter costs the next one at most, with the next one's
	// request.
	claim = 600 * time.Millisecond
)

// drawMoment draws a time: any number of digits, some years in which a digit comes or clocks begin,
// or a time of now.
func drawMoment(d dice) time.Time {
	within := time.Duration(d.Int64N(int64(runLength)))
	switch roll := d.IntN(100); {
	case roll < 30:
		return time.UnixMicro(int64(math.Exp(d.Float64() * math.Log(float64(latest.UnixMicro())))))
	case roll < 45:
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(within)
	case roll < 65: // the microseconds get their sixteenth digit, and the milliseconds their thirteenth
		return time.UnixMicro(1e15).Add(-within)
	}
	return time.Date(2026+d.IntN(30), 1, 1, 0, 0, 0, 0, time.UTC).Add(within)
}

// drawClock draws what the only server's clock shows, and turns some of its steps into leaps:
// forward to any time, or back to any time until it is set right again.
func (p *Plan) drawClock(d dice) {
	p.Servers[0].Shows = drawMoment(d)
	shows := p.Servers[0].Shows // less what has passed since the begin
	var right *Fault            // what sets the clock right again
	var more []Fault
	for i := range p.Faults {
		f := &p.Faults[i]
		if f.Kind != Step {
			continue
		}
		if right != nil && right.At <= f.At {
			shows, right = shows.Add(right.Delay), nil
		}
		now := shows.Add(f.At)
		by, long := drawMoment(d).Sub(now), d.Short(time.Second, time.Minute)
		if d.Percent(60) { // long enough for all to come right meanwhile
			long = d.Between(time.Minute, maxSetBack)
		}
		until := min(f.At+long, workEnd-recoveryTime)
		switch {
		case right != nil || until <= f.At || d.Percent(40):
		case by >= leap:
			f.Delay = by
		case by <= -leap:
			f.Delay = by
			right = &Fault{At: until, Kind: Step, Delay: -by + d.Short(0, 20*time.Second)}
			more = append(more, *right)
		}
		f.Delay = max(f.Delay, earliest.Sub(now))
		shows = shows.Add(f.Delay)
	}
	p.addFaults(more...)
}

// addFaults adds faults, in the order of time.
func (p *Plan) addFaults(more ...Fault) {
	p.Faults = append(p.Faults, more...)
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
}

// drawClocks draws what the masters' clocks show, and lets some of them step instead of forgetting
// otherwise: forward, which is to forget, or back, where nothing else is forgotten until the clock
// is set right. Steps forward are too large not to be seen.
func (p *Plan) drawClocks(d dice) {
	shows := make([]time.Time, len(p.Servers)) // less what has passed since the begin
	for i := range p.Servers {
		shows[i] = drawMoment(d)
		p.Servers[i].Shows = shows[i]
	}
	var forgets []*Fault
	for i := range p.Faults {
		if f := &p.Faults[i]; f.Kind == ForgetDown || f.Kind == Restart || f.Kind == Flush {
			forgets = append(forgets, f)
		}
	}
	var more []Fault
	for i, f := range forgets {
		next := workEnd - recoveryTime
		if i+1 < len(forgets) {
			next = forgets[i+1].At
		}
		now := shows[f.Server].Add(f.At)
		by, back := drawMoment(d).Sub(now), -d.Short(time.Millisecond, 20*time.Second)
		left := min(next-recountTime-f.At, maxSetBack)
		long := time.Second
		if left > time.Second {
			long = d.Between(time.Second, left)
		}
		if d.Percent(50) {
			continue
		}
		f.Kind, f.For, f.Delay = Step, 0, max(back, earliest.Sub(now))
		switch {
		case by >= minVisibleStep:
			f.Delay = by
		case by <= -leap && left > time.Second:
			f.Delay = by
			more = append(more, Fault{At: f.At + long, Server: f.Server, Kind: Step, Delay: -by})
			continue // it is set right before it steps again
		}
		shows[f.Server] = shows[f.Server].Add(f.Delay)
	}
	p.addFaults(more...)
}

// set steps the server's clock. As on a real server what expires does so at a time: miniredis
// counts what a key has left, and would keep that when the clock is set back.
func (h *host) set(step time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tick()
	keys := h.Keys()
	h.step += step
	h.tick()
	if step >= 0 {
		return
	}
	for _, key := range keys {
		if left := h.TTL(key); left > 0 {
			h.SetTTL(key, left-step)
		}
	}
}

// noteLeap takes a leap of the only server's clock down. mu is held.
func (l *ledger) noteLeap(f *Fault) {
	switch {
	case f.Kind != Step || l.plan.Mode == Quorum:
	case f.Delay <= -leap:
		l.setBack = time.Now()
	case f.Delay >= leap:
		l.setBack = time.Time{}
	}
}

// excuseAfterLeap returns how much longer than maxIdle a name may be free while the clock is set
// back by years. Holds and places of those that died end when it is set right; nobody can wait for
// that. A hold keeps all out until then; a place costs a claim.
func (l *ledger) excuseAfterLeap(class string) (more time.Duration, ever bool) {
	if l.setBack.IsZero() {
		return 0, false
	}
	for _, at := range l.classes[class].died {
		if at.After(l.setBack.Add(-recoveryTime)) {
			more += claim
		}
	}
	return more, l.hasOldHold(class)
}

// hasOldHold reports whether the server keeps a hold of a class that was made before its clock was
// set back by years.
func (h *host) hasOldHold(of string) bool {
	const longestHold = longestTTL + longestTTL/10 // also of a min hold, by a clock that drifts
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.tick()
	for _, name := range locks {
		if class(name) != of {
			continue
		}
		key := "holdfast:{" + name + "}"
		if h.Type(key) == "string" && h.TTL(key) > longestHold {
			return true
		}
		if h.Type(key) != "zset" {
			continue
		}
		members, err := h.SortedSet(key)
		if err != nil {
			continue
		}
		for member, score := range members {
			const shared = 1e13
			if ends := math.Mod(score, shared); score > 0 && !strings.HasPrefix(member, "t") &&
				ends > float64(now.Add(longestHold).UnixMilli()) {
				return true
			}
		}
	}
	return false
}

// stepKnowledge is what is known of a master's clock that was set forward. A client that was
// answered since the clock was set back, or since the memory of the master began, sees the step.
// For others the master counts, until one of those clients has told it to begin its memory anew.
type stepKnowledge struct {
	since time.Time        // it was set back, or its memory began
	mark  string           // the birth mark of the memory that it was set forward in; empty: it was not
	told  time.Time        // when that was gone
	knew  map[*client]bool // clients that see it
}

// noteStepForward takes a step forward of a master down, before it is done; noteMemoryLoss takes
// one back, or the end of its memory.
func (w *world) noteStepForward(server int) {
	h := w.hosts[server]
	w.mu.Lock()
	defer w.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known.mark, h.known.told, h.known.knew = h.HGet(factsKey, "born"), time.Time{}, map[*client]bool{}
	for _, c := range w.clients {
		h.known.knew[c] = c.wires[server].heardSince(h.known.since)
	}
}

func (w *world) noteMemoryLoss(server int) {
	w.hosts[server].withClock(func() { w.hosts[server].known.since = time.Now() })
}

// isStepUnknown reports whether a master's clock was set forward, and nobody has told it yet. mu is
// held.
func (h *host) isStepUnknown() bool {
	if h.known.mark == "" || !h.known.told.IsZero() {
		return false
	}
	if h.HGet(factsKey, "born") != h.known.mark {
		h.known.told = time.Now()
	}
	return h.known.told.IsZero()
}

// mayNotSeeStep reports whether a client may be let in by a master that has ended holds early, as
// it cannot see that: also a little later, as answers take their time. "A node whose clock is set
// forward counts for clients that never met it before, until one that did is answered."
func (w *world) mayNotSeeStep(c *client) bool {
	const answers = 5 * time.Second
	return slices.ContainsFunc(w.hosts, func(h *host) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return (h.isStepUnknown() || !h.known.told.IsZero() && time.Since(h.known.told) < answers) && !h.known.knew[c]
	})
}
