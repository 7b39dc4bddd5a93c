package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clockReads   = 100         // at the beginning, and again at the end
	clockTime    = time.Second // for so many reads
	leastStep    = 100 * time.Millisecond
	leastWindow  = 300 * time.Millisecond // that a rate is judged by
	clockWindow  = time.Second            // that it is judged by if nothing goes wrong
	mostDrift    = 0.01                   // a lease's margin is a hundredth of its TTL
	mostDistance = time.Second            // between the clocks of the server and of this host
	slowTrip     = 100 * time.Millisecond
)

// A clockReading is one answer of TIME. The server's clock showed it between sent and came.
type clockReading struct {
	sent, came time.Time // of this host, with its monotonic clock
	shown      time.Time // by the server
}

// clockReadings are in the order of time.
type clockReadings []clockReading

func (c *clockReadings) read(ctx context.Context, rdb *redis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	sent := time.Now()
	shown, err := rdb.Time(ctx).Result()
	if err == nil {
		*c = append(*c, clockReading{sent, time.Now(), shown})
	}
	return err
}

// readMany reads the clock as often as it may, until an answer fails.
func (c *clockReadings) readMany(ctx context.Context, rdb *redis.Client) {
	began := time.Now()
	for range clockReads {
		if c.read(ctx, rdb) != nil || time.Since(began) > clockTime {
			return
		}
	}
}

// ahead returns the least and the largest difference between the server's clock and a clock of this
// host that started at began.
func (r clockReading) ahead(began time.Time) (least, most time.Duration) {
	shown := time.Duration(r.shown.UnixNano() - began.UnixNano())
	return shown - r.came.Sub(began), shown - r.sent.Sub(began)
}

// step returns the largest step between two readings that follow each other. 0: none that is sure.
func (c clockReadings) step() (largest time.Duration) {
	for i := 1; i < len(c); i++ {
		began := c[0].sent
		oldLeast, oldMost := c[i-1].ahead(began)
		least, most := c[i].ahead(began)
		step := time.Duration(0)
		switch {
		case least-oldMost > leastStep:
			step = least - oldMost
		case oldLeast-most > leastStep:
			step = most - oldLeast
		}
		if step.Abs() > largest.Abs() {
			largest = step
		}
	}
	return largest
}

// drift returns the rate by which the server's clock is surely faster (positive) or slower than
// ours. ok is false if the readings are too few.
func (c clockReadings) drift() (rate float64, ok bool) {
	if len(c) < 2 {
		return 0, false
	}
	first, last := c[0], c[len(c)-1]
	window := last.came.Sub(first.sent)
	if window < leastWindow {
		return 0, false
	}
	firstLeast, firstMost := first.ahead(first.sent)
	lastLeast, lastMost := last.ahead(first.sent)
	switch {
	case lastLeast > firstMost:
		return float64(lastLeast-firstMost) / float64(window), true
	case lastMost < firstLeast:
		return float64(lastMost-firstLeast) / float64(window), true
	}
	return 0, true
}

func (p *serverCheck) time() {
	const check = "clock"
	const forward = "a clock that is set forward ends holds early: second holders get in while the first still trust theirs"
	if step := p.clock.step(); step != 0 {
		p.add(Danger, check, fmt.Sprintf("the server's clock stepped by %v during the examination",
			step.Round(time.Millisecond)), forward,
			"let chrony or ntpd slew the clock, not step it: makestep 1.0 3 in chrony.conf steps at the start alone")
		return
	}
	rate, ok := p.clock.drift()
	switch {
	case !ok:
		p.add(Note, check, "no steps; the time was too short for a rate", "", "")
	case rate > mostDrift || rate < -mostDrift:
		p.add(Danger, check, fmt.Sprintf("the server's clock runs %+.1f %% off this host's", 100*rate),
			"holds end sooner or later than their holders trust: the margin is 1 % of the TTL",
			"look at the clocks of both machines: chronyc tracking")
	default:
		p.compareClocks(check)
	}
}

func (p *serverCheck) compareClocks(check string) {
	last := p.clock[len(p.clock)-1]
	distance := last.shown.Sub(last.came.Add(-last.came.Sub(last.sent) / 2)).Round(time.Millisecond)
	p.note(distance.Abs() < mostDistance, check,
		fmt.Sprintf("no steps, rate right within 1 %%, %v beside this host's clock", distance),
		"locks use the server's clock alone, so this does no harm; but one of the clocks is not kept, and its correction may be a step",
		"run chrony or ntpd on both machines")
}

// roundTrips tells how long answers took.
func (p *serverCheck) roundTrips() {
	const check = "round trip"
	var trips []time.Duration
	for _, r := range p.clock[1:] { // the first one connected
		trips = append(trips, r.came.Sub(r.sent))
	}
	if len(trips) == 0 {
		p.add(Unknown, check, "no second answer", "the server is about to be away", "")
		return
	}
	p50, p99 := percentiles(trips)
	found := fmt.Sprintf("p50 %v, p99 %v of %d", p50, p99, len(trips))
	p.note(p99 < slowTrip, check, found, "a lease is renewed every third of its TTL, and lost if that takes too long",
		"choose a TTL of at least 30 times the p99")
}

// percentiles are the middle, and what one of a hundred exceeds.
func percentiles(of []time.Duration) (p50, p99 time.Duration) {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2].Round(time.Microsecond), sorted[len(sorted)*99/100].Round(time.Microsecond)
}
