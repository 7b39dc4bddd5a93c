package lateness

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Mix is the callers of one name.
type Mix struct {
	Name    string
	Kind    protocol.Kind
	Permits int64         // of a semaphore
	Delay   time.Duration // the longest that a request, an answer or a message is under way
	Callers []Caller
}

// A Caller asks for the name once.
type Caller struct {
	Process int           // callers of one process share an engine
	At      time.Duration // when it asks, after the start
	Shared  bool          // a reader
	Weight  int64         // of a semaphore
	Owner   string        // enters beside a hold of its own that excludes
	TTL     time.Duration
	MinHold time.Duration
	RunsOut bool          // its lease is not renewed, and never released
	For     time.Duration // else how long it holds before it releases
	Wait    time.Duration // after which it gives up; 0: never
}

func (m Mix) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v, %d permits, delays up to %v\n", m.Name, m.Kind, m.Permits, m.Delay)
	for i, c := range m.Callers {
		fmt.Fprintf(&b, "  caller %d: %+v\n", i, c)
	}
	return b.String()
}

// Mixes returns those in which waiters once entered late, and so many more that are drawn.
func Mixes(drawn int) []Mix {
	all := known()
	for seed := range drawn {
		all = append(all, draw(uint64(seed)))
	}
	return all
}

// draw makes a mix from a seed.
func draw(seed uint64) Mix {
	rng := rand.New(rand.NewPCG(seed, 0))
	second := time.Second
	ttls := []time.Duration{second, 3 * second, 15 * second, 15 * second, time.Minute, time.Minute}
	mins := []time.Duration{0, 0, second, 3 * second, 4 * second, 10 * second}
	m := Mix{Name: fmt.Sprint("seed ", seed)}
	switch rng.IntN(5) {
	case 0:
		m.Kind = protocol.Mutex
	case 1, 2:
		m.Kind = protocol.ReadWrite
	default:
		m.Kind, m.Permits = protocol.Semaphore, 1+rng.Int64N(4)
	}
	if seed%2 == 1 {
		m.Delay = 30 * time.Millisecond
	} else {
		ttls = append(ttls, 300*time.Millisecond) // whose hand-over lasts no longer than the delays
	}
	some := 3 + rng.IntN(6)
	runOut := rng.IntN(2) == 0
	for i := range some {
		c := Caller{
			Process: rng.IntN(some),
			At:      upTo(rng, 6*second),
			Weight:  1,
			TTL:     ttls[rng.IntN(len(ttls))],
			MinHold: mins[rng.IntN(len(mins))],
			For:     upTo(rng, 9*second),
		}
		switch m.Kind {
		case protocol.ReadWrite:
			c.Shared = rng.IntN(3) > 0
		case protocol.Semaphore:
			c.Shared, c.Weight = true, 1+rng.Int64N(m.Permits)
		}
		switch {
		case i == 0: // holds first, mostly, and keeps others out for long as far as they know
			c.At, c.TTL = 0, time.Minute
		case runOut && rng.IntN(3) == 0:
			c.RunsOut, c.TTL = true, ttls[rng.IntN(2)]
		}
		if rng.IntN(5) == 0 {
			c.Wait = 1 + upTo(rng, 8*second)
		}
		m.Callers = append(m.Callers, c)
	}
	return m
}

func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(most.Milliseconds())) * time.Millisecond
}
