package quorum

import (
	"math"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// leap is by how much a node's clock must be later than it can be before it counts as set forward.
// Less may be our own clock, which stands still while a virtual machine is moved to another host.
const leap = 100 * time.Millisecond

// A clock bounds what a node's clock shows from both sides, so that a clock that is set forward is
// noticed: wire.Clock has the earliest, and this the latest. It is safe for concurrent use.
type clock struct {
	wire.Clock

	mu     sync.Mutex
	server int64     // microseconds of an answer; 0: none yet
	born   int64     // the memory that the answer was of
	sent   time.Time // when its request was sent
	since  time.Time // what was asked for before bounds nothing
}

// forward reports whether an answer is of a clock that was set forward by more than a leap. If it
// is not, the answer is noted.
func (c *clock) forward(now, born int64, sent, received time.Time, leap time.Duration) bool {
	return c.lead(now, born, sent, received, leap) > 0
}

// lead returns how much more an answer shows than the node's clock can, if that is more than a
// leap. Otherwise it is 0, and the answer is noted. A memory that began since the last answer is of
// a clock that others saw set, or of another machine: it is no older than the time since then.
func (c *clock) lead(now, born int64, sent, received time.Time, leap time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Observe(now, received)
	if sent.Before(c.since) {
		return 0
	}
	if c.server != 0 {
		from := c.server
		if born != c.born {
			from = max(from, born)
		}
		late := latest(from, c.sent, received)
		if now > late+leap.Microseconds() {
			return micros(now - late)
		}
		if latest(now, sent, received) >= late {
			return 0
		}
	}
	c.server, c.born, c.sent = now, born, sent
	return 0
}

// micros returns a number of microseconds as a duration. The number may be thousands of years, and
// a duration is at most 292 years.
func micros(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/1000)) * time.Microsecond
}

// latest returns the latest that a clock can show at a local time. The monotonic clock may stand
// still while a machine sleeps, so the wall clock counts where it is later. Rates may differ by one
// in a hundred.
func latest(server int64, sent, local time.Time) int64 {
	since := max(local.Sub(sent), local.Round(0).Sub(sent.Round(0)))
	return server + (since + since/100).Microseconds()
}

// ceiling returns what the node's clock shows at a local time at which a hold must end, and "" if
// too little is known. It is the earliest that the clock can show then. But if the answers were
// slow, the clock may show that before trust in the hold ends: then it is the latest that the clock
// can show when trust ends, as safety comes before a ceiling.
func (c *clock) ceiling(end, trusted time.Time) string {
	at, ok := c.NotAfter(end)
	if !ok || trusted.IsZero() {
		return at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == 0 {
		return at
	}
	return max(at, wire.Digits16(latest(c.server, c.sent, trusted)))
}

// latestAt returns the latest that the node's clock can show at a local time. It is false if
// nothing was heard of the node.
func (c *clock) latestAt(local time.Time) (server int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return latest(c.server, c.sent, local), c.server != 0
}

// set notes an answer whatever was known before.
func (c *clock) set(now, born int64, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.born, c.sent = now, born, sent
}

// forget is for when the clock that was wrong is ours. Answers that are on their way may be from
// before that.
func (c *clock) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.since = 0, time.Now()
}
