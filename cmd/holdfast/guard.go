package main

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
)

// How often the guard looks at the clocks although nothing is due: a timer stands still while the machine sleeps.
const look = time.Second

// A guard stands between a command and the end of its lock. Nothing in its way may block: what it says is
// written by somebody else.
type guard struct {
	child   *child.Child
	lease   held
	signals *signals
	voice   *voice
	name    string
	onLost  string
	early   time.Duration // trust left when the command is asked to end
	ttl     time.Duration
	maxEnd  time.Time // of the max hold; zero: none

	asked  error     // why the command is to end
	told   bool      // and it was told so
	ended  error     // why the lock was lost, or is as good as lost
	due    time.Time // when step was to be called
	spared bool      // the command was not asked to end when it should have been, as we came late
}

// held is what a guard must know of a lease.
type held interface {
	Done() <-chan struct{}
	Err() error
	Until() time.Time
}

// watch returns when the command has ended, and has been waited for. The error says how the lock was lost, or that the
// command had to be asked to end for fear of that.
func (g *guard) watch() error {
	over := g.lease.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(g.step())
		select {
		case <-g.child.Done():
			return g.after()
		case <-over:
			over = nil // step sees it
		case s := <-g.signals.heard:
			if s == continueSignal {
				g.child.Resume()
			} else {
				g.child.Signal(s)
			}
		case s := <-g.child.Stopped():
			// While we are stopped nobody renews. So what follows may find the lock lost, and then the command, which is
			// stopped, ends without another step.
			g.child.Follow(s, func() bool { g.step(); return g.ended == nil || g.onLost != onLostKill })
			g.signals.again()
		case <-timer.C:
		}
	}
}

// step does what is due and returns when to come again.
func (g *guard) step() time.Duration {
	now := time.Now()
	next := g.do(now)
	g.due = now.Add(next)
	return next
}

func (g *guard) do(now time.Time) time.Duration {
	if g.ended != nil {
		return time.Hour
	}
	if err := g.lease.Err(); err != nil {
		g.ended = err
		g.lost(err)
		return time.Hour
	}
	until := g.lease.Until()
	left, early := left(until, now), g.early
	early = max(early, g.reserve())
	if g.asked == nil && left > early {
		g.spared = false
		return min(left-early, look)
	}
	// When this process stood still, so did the renewals: the next one is on its way.
	if g.asked == nil && !g.spared && !g.due.IsZero() && now.Round(0).Sub(g.due.Round(0)) > early/10 {
		g.spared = true
		return min(left, early) / 4
	}
	if g.asked == nil {
		g.asked = fmt.Errorf("no renewal of %q was confirmed in time", g.name)
		if !g.maxEnd.IsZero() && g.maxEnd.Sub(until) < g.ttl/3 {
			g.asked = fmt.Errorf("the max hold of %q is over", g.name)
		}
		g.warn(left)
	}
	if left <= g.reserve() {
		g.ended = g.asked
		g.lost(g.asked)
		return time.Hour
	}
	return max(min(left-g.reserve(), look), time.Millisecond)
}

// reserve is the trust that is left when a command is killed that did not end: a process takes time to die, and longer on a
// busy machine.
func (g *guard) reserve() time.Duration {
	if g.onLost != onLostKill {
		return 0
	}
	return min(g.ttl/50, 100*time.Millisecond)
}

// warn asks the command to end while the lock is still ours.
func (g *guard) warn(left time.Duration) {
	if g.onLost != onLostIgnore && g.early > 0 && child.Groups {
		g.told = true
		g.child.Term()
		g.voice.say("%v, %v are left: TERM to the command", g.asked, round(left))
	}
}

// lost does what the end of the lock asks for.
func (g *guard) lost(err error) {
	switch g.onLost {
	case onLostKill:
		g.child.Kill()
		g.voice.say("%v: KILL to the command", err)
	case onLostTerm:
		if !g.told {
			g.child.Term()
		}
		g.voice.say("%v: the command may go on without it", err)
	default:
		g.voice.say("%v: the command goes on without it", err)
	}
}

// after is the end of a command. If it was for the lock's sake, what it started ends as well, by the same moment.
func (g *guard) after() error {
	if g.ended == nil {
		if err := g.lease.Err(); err != nil {
			g.ended = err
		}
	}
	if g.onLost == onLostKill && (g.told || g.ended != nil) {
		for end := g.lease.Until().Add(-g.reserve()); g.child.Left() && g.lease.Err() == nil && time.Now().Before(end); {
			time.Sleep(2 * time.Millisecond)
		}
		if g.child.Left() {
			g.child.Kill()
		}
	}
	switch {
	case g.ended != nil:
		return g.ended
	case g.told:
		return g.asked
	}
	return nil
}

// left is how long until a moment, by the clock that is ahead.
func left(until, now time.Time) time.Duration {
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}
