package lottery

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// slack is what a take-over may need on top of the TTL; it is the library's promise.
const slack = 200 * time.Millisecond

// A Result is what came of a lottery.
type Result struct {
	Rounds    int
	Draws     int             // taken by the ledger
	Doubles   int             // tried in a round that was drawn
	Stale     int             // tried with a token that was too small
	Turns     int             // times that a worker held the lock
	Overlaps  int             // of these, begun while another held it
	Backwards int             // of these, with a token not larger than the one before
	Lost      int             // of these, with a lease that was lost
	HandOvers []time.Duration // from a release to the next one's return from Lock, for those that waited; sorted
	Incidents []Incident      // what happened to holders
	Problems  []string        // what went wrong besides
}

// Err is nil if every round had one draw, nobody tried a second one, no token went back, a holder that was killed,
// stopped or stayed too long was replaced in time, and those that lived saw it; else it says what was not so.
func (r *Result) Err() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(r.Draws == r.Rounds, "%d of %d rounds had a draw", r.Draws, r.Rounds)
	check(r.Doubles == 0, "%d double draws were tried", r.Doubles)
	check(r.Stale == 0, "%d draws came with an old token", r.Stale)
	check(r.Overlaps == 0, "%d times two held the lock", r.Overlaps)
	check(r.Backwards == 0, "%d tokens did not grow", r.Backwards)
	for _, i := range r.Incidents {
		check(i.Took > 0, "nobody took over after %v", i.Trial)
		check(i.Took <= i.Allowed, "taking over after %v took %v, more than %v", i.Trial, i.Took.Round(time.Millisecond), i.Allowed)
		check(i.Lost || i.Trial == Kill, "after %v the holder did not see that it had lost its lease", i.Trial)
		check(i.Refused || i.Trial != Stop, "the late draw after %v was not refused by its token", i.Trial)
	}
	for _, p := range r.Problems {
		errs = append(errs, errors.New(p))
	}
	return errors.Join(errs...)
}

// HandOver is a quantile of the hand-overs, 0 if there was none.
func (r *Result) HandOver(q float64) time.Duration {
	return quantile(r.HandOvers, q)
}

// handOvers measures from turn to turn, where the next one stood waiting when the one before released.
func handOvers(turns []turn) []time.Duration {
	var took []time.Duration
	for i := 1; i < len(turns); i++ {
		from, to := turns[i-1], turns[i]
		waited := to.since.Before(from.released) && !to.at.Before(from.released)
		if from.round == to.round && !from.released.IsZero() && waited {
			took = append(took, to.at.Sub(from.released))
		}
	}
	slices.Sort(took)
	return took
}

// quantile is the smallest of the sorted values that at least the share q of them does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
