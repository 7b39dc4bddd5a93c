package demo

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// A trial is what happens to the holder of a round before it draws.
type trial int

const (
	none     trial = iota
	stop           // stopped past its TTL, and continued at the end of the round: it draws too late
	overstay       // does not end before its max hold
	kill           // killed with -9
)

var (
	trialTitles = []string{stop: "stopped", overstay: "max hold", kill: "kill -9"}
	trialStarts = []string{stop: "the stop", overstay: "the grant", kill: "the kill"}
)

// trialOf is the trial in a round. Rounds without a trial come before, between and after. The kill
// is the last trial, as it costs a worker.
func (c *Config) trialOf(round int) trial {
	switch n := c.Rounds; {
	case c.NoLock:
		return none // nobody would notice
	case round == max((3*n+3)/4, min(n, 3)) && n >= 3, round == n && n < 3:
		return kill
	case round == (n+3)/4 && n >= 2 && c.Pause != nil:
		return stop
	case round == (n+1)/2 && n >= 3:
		return overstay
	}
	return none
}

func (c *Config) maxHold() time.Duration { return c.TTL + c.TTL/4 }

// An outcome is that of a trial of one worker.
type outcome struct {
	kind    trial
	worker  int
	began   time.Time
	limit   time.Duration // the most that took may be
	took    time.Duration // until the next worker held the lock; 0: none did
	lost    bool          // the worker saw that its lease was lost
	refused bool          // its late draw was refused
}

// begin puts a holder on trial. Other workers may enter when its lease is over, whatever the holder
// itself believes.
func (l *lottery) begin(kind trial, worker int) (err error) {
	// Times of several processes are compared, so without the monotonic clock.
	l.trial = &outcome{kind: kind, worker: worker, began: time.Now().Round(0), limit: l.TTL + l.Slack}
	l.trials = append(l.trials, l.trial)
	switch kind {
	case kill:
		l.tell(worker, "K", "killed", "is killed with -9 before it draws; its lease lasts up to %v more", l.TTL)
		err = l.processes[worker].Kill()
	case stop:
		l.tell(worker, "S", "stopped", "is stopped before it draws; its lease lasts up to %v more", l.TTL)
		err = l.processes[worker].Signal(l.Pause)
	case overstay:
		l.trial.limit = l.maxHold() + l.Slack
		l.tell(worker, "M", "HOLDS on and on", "takes its time, and renews; its max hold is %v", l.maxHold())
	}
	if err != nil {
		return l.problem(worker, "%v", err)
	}
	l.overdue = time.After(l.trial.limit + 2*time.Second)
	l.answer(worker, answer{Trial: kind}) // a stopped worker reads it later
	return nil
}

// handOvers are the times from a release to the grant of the next worker, if it was waiting.
func handOvers(turns []turn) (took []time.Duration) {
	for i := 1; i < len(turns); i++ {
		from, to := turns[i-1], turns[i]
		if from.round == to.round && to.waiting.Before(from.released) && !to.at.Before(from.released) {
			took = append(took, to.at.Sub(from.released))
		}
	}
	slices.Sort(took)
	return took
}

// quantile is the smallest of the sorted values that at least the share q of them does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}

func short(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func (l *lottery) summary() string {
	text := fmt.Sprintf("rounds        %d\ndraws         %d\ndouble draws  %d\n", l.Rounds, len(l.winners), l.doubles)
	if !l.NoLock && len(l.problems) == 0 {
		text += fmt.Sprintf("tokens        %d leases, each token larger than the one before\n", len(l.turns))
	}
	if took := handOvers(l.turns); len(took) > 0 {
		text += fmt.Sprintf("hand-over     p50 %s, p99 %s, of %d: from a release to the next start\n",
			short(quantile(took, 0.5)), short(quantile(took, 0.99)), len(took))
	}
	for _, t := range l.trials {
		outcome := fmt.Sprintf("replaced after %s, limit %s", short(t.took), short(t.limit))
		if t.took == 0 {
			outcome = "nobody took over"
		}
		text += fmt.Sprintf("%-13s %s", trialTitles[t.kind], outcome)
		if t.refused {
			text += "; late draw refused"
		}
		if t.lost {
			text += "; loss seen"
		}
		text += "\n"
	}
	return text
}

// broken is nil if all went as promised: every round had one draw, no worker tried a second, and
// every token grew. Every holder on trial was replaced in time, and saw its loss.
func (l *lottery) broken() error {
	errs := slices.Clone(l.problems)
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(len(l.winners) == l.Rounds, "%d of %d rounds had a draw", len(l.winners), l.Rounds)
	check(l.doubles == 0, "%d double draws were tried", l.doubles)
	for _, t := range l.trials {
		start := trialStarts[t.kind]
		check(t.took > 0, "nobody took over after %s", start)
		check(t.took <= t.limit, "the take-over came %v after %s, more than %v", t.took, start, t.limit)
		check(t.lost || t.kind == kill, "after %s the holder did not see that its lease was lost", start)
		check(t.refused || t.kind != stop, "the late draw after %s was not refused by its token", start)
	}
	return errors.Join(errs...)
}
