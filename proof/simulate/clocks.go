package simulate

import (
	"math"
	"slices"
	"time"
)

// drawMoment draws a time: any number of digits, some years in which a digit comes or clocks begin,
// or a time of now.
func drawMoment(d dice) time.Time {
	within := time.Duration(d.Int64N(int64(runLength)))
	const latest = 1 << 52 // microseconds, in 2112
	switch roll := d.IntN(100); {
	case roll < 30:
		return time.UnixMicro(int64(math.Exp(d.Float64() * math.Log(latest)))).Add(runLength)
	case roll < 45:
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(within)
	case roll < 65: // the microseconds get their sixteenth digit, and the milliseconds their thirteenth
		return time.UnixMicro(1e15).Add(-within)
	}
	return time.Date(2026+d.IntN(30), 1, 1, 0, 0, 0, 0, time.UTC).Add(within)
}

// drawClocks draws what the servers' clocks show.
func (p *Plan) drawClocks(d dice) {
	for i := range p.Servers {
		p.Servers[i].Shows = drawMoment(d)
	}
}

// sortFaults puts the faults in the order of their times.
func (p *Plan) sortFaults() {
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
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
