package protocol

import "time"

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
