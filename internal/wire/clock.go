package wire

import (
	"strconv"
	"sync"
	"time"
)

// A Clock bounds a server's time from its answers. An answer that carries the server's microseconds
// s was decided before it was received. So at a later local time t the server's clock shows at
// least s + (t - received), as long as nobody sets it. Package quorum has the upper bound. The zero
// Clock has heard nothing.
type Clock struct {
	mu       sync.Mutex
	server   int64 // microseconds; 0: nothing heard yet
	received time.Time
}

// Observe takes the server's microseconds of an answer and when the answer was received. The newest
// counts: drift touches it least, and a clock that was set shows.
func (c *Clock) Observe(server int64, received time.Time) {
	c.mu.Lock()
	c.server, c.received = server, received
	c.mu.Unlock()
}

// fresh is how long an answer bounds the server's time well: clocks drift apart by some
// milliseconds meanwhile.
const fresh = time.Minute

// NotAfter returns the earliest that the server's clock can show at a local time, as scripts
// compare it. It is false if no answer is fresh.
func (c *Clock) NotAfter(local time.Time) (string, bool) {
	c.mu.Lock()
	server, received := c.server, c.received
	c.mu.Unlock()
	if server == 0 || local.Sub(received) > fresh {
		return "", false
	}
	return Digits16(server + local.Sub(received).Microseconds()), true
}

// At returns what the server's clock shows at least at a local time. It is false if nothing was
// heard of the server.
func (c *Clock) At(local time.Time) (server int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server + local.Sub(c.received).Microseconds(), c.server != 0
}

// Digits16 writes a number as scripts compare numbers: sixteen digits. A negative number is written
// as 0.
func Digits16(n int64) string {
	const zeros = "0000000000000000"
	buf := strconv.AppendInt(make([]byte, 0, 20), max(n, 0), 10)
	return zeros[min(len(buf), len(zeros)):] + string(buf)
}

// Number reads a decimal number as scripts write it.
func Number(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// Millis returns a duration as scripts take it: whole milliseconds, never 0.
func Millis(d time.Duration) int64 { return max(1, d.Milliseconds()) }

// ServerTime reads the reply of TIME, as microseconds.
func ServerTime(value any) (int64, bool) {
	parts, _ := value.([]any)
	if len(parts) != 2 {
		return 0, false
	}
	seconds, ok1 := parts[0].(string)
	micros, ok2 := parts[1].(string)
	if !ok1 || !ok2 {
		return 0, false
	}
	s, ok1 := Number(seconds)
	us, ok2 := Number(micros)
	return s*1e6 + us, ok1 && ok2
}
