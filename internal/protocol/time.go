package protocol

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// NewTimer is time.NewTimer for at least a nanosecond. A timer whose time is over is run by the
// goroutine that reads it. In a bubble of synctest the race detector of Go 1.26 does not survive
// two of these at one moment.
func NewTimer(d time.Duration) *time.Timer { return time.NewTimer(max(d, 1)) }

// ResetTimer is Reset as NewTimer is time.NewTimer.
func ResetTimer(timer *time.Timer, d time.Duration) { timer.Reset(max(d, 1)) }

// Pause waits for d. False: ctx ended first, or the client, which closes closing.
func Pause(ctx context.Context, d time.Duration, closing <-chan struct{}) bool {
	timer := NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-closing:
	}
	return false
}

// A Pace bounds how often one caller asks, whatever is answered. A few requests may follow each
// other at once, as messages and answers demand; from then on there is one in each Every. Only the
// goroutine that asks uses it.
type Pace struct {
	Every time.Duration
	whole time.Time // when paceAtOnce requests may follow each other again; zero: none was sent
}

// paceAtOnce is how many requests may follow each other.
const paceAtOnce = 10

// Sent counts a request that is sent at a moment.
func (p *Pace) Sent(at time.Time) {
	if p.whole.Before(at) {
		p.whole = at
	}
	p.whole = p.whole.Add(p.Every)
}

// Next returns the moment before which no request is to be sent. Zero: none was sent yet.
func (p *Pace) Next() time.Time {
	if p.whole.IsZero() {
		return time.Time{}
	}
	return p.whole.Add(-(paceAtOnce - 1) * p.Every)
}

// ErrWaitOver is the cause of a context that bounds the waiting of a call alone.
var ErrWaitOver = errors.New("the time to wait is over")

// EndOf is how ctx ended: what ctx.Err says, and the cause where that is another error. It matches
// both. If the time to wait is over, the caller's own context is not: then it is ErrWaitOver alone.
func EndOf(ctx context.Context) error {
	end, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, ErrWaitOver) {
		return cause
	}
	if end == nil { // a request that ends with the deadline of ctx may see it first
		end = context.DeadlineExceeded
	}
	switch {
	case cause == nil:
		return end
	case errors.Is(cause, end):
		return cause
	}
	return fmt.Errorf("%w: %w", end, cause)
}
