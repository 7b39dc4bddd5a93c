package native

import (
	"strconv"
	"sync"
	"time"
)

// A serverClock bounds the server's time from its answers. An answer that carries the server's microseconds s was
// decided after its request was sent and before it was received, so at a later local time t the server's clock shows
// at least s + (t - received) and at most s + (t - sent), as long as nobody sets it.
type serverClock struct {
	mu       sync.Mutex
	server   int64 // microseconds; 0: nothing heard yet
	received time.Time
}

// observe takes an answer. The newest counts: it is the one least touched by drift, and a clock that was set shows.
func (c *serverClock) observe(server int64, received time.Time) {
	c.mu.Lock()
	c.server, c.received = server, received
	c.mu.Unlock()
}

// fresh is how long an answer bounds the server's time well: clocks drift apart by some milliseconds meanwhile.
const fresh = time.Minute

// notAfter is the earliest that the server's clock can show at a local time, as scripts compare it; false when no answer
// is fresh.
func (c *serverClock) notAfter(local time.Time) (string, bool) {
	c.mu.Lock()
	server, received := c.server, c.received
	c.mu.Unlock()
	if server == 0 || local.Sub(received) > fresh {
		return "", false
	}
	return digits16(server + local.Sub(received).Microseconds()), true
}

// digits16 writes a number as scripts compare numbers: sixteen digits.
func digits16(n int64) string {
	const zeros = "0000000000000000"
	buf := strconv.AppendInt(make([]byte, 0, 20), max(n, 0), 10)
	return zeros[min(len(buf), len(zeros)):] + string(buf)
}
