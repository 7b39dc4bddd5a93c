package harness

import (
	"math/rand/v2"
	"time"
)

// A Dice draws decisions.
type Dice struct{ *rand.Rand }

// Percent returns true in n of 100 draws.
func (d Dice) Percent(n int) bool { return d.IntN(100) < n }

// Between draws a duration.
func (d Dice) Between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.Int64N(int64(to-from)+1))
}

// Short draws a duration of which most are much nearer to from than to to.
func (d Dice) Short(from, to time.Duration) time.Duration {
	x := d.Float64()
	return from + time.Duration(x*x*x*float64(to-from))
}
