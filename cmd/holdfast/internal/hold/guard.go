package hold

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// checkEvery is how often the guard compares the clocks although nothing is due: a timer stands
// still while the machine sleeps.
const checkEvery = time.Second

// A guard ends a command before its lock can be another's. The guard must not block; so notices
// write for it.
type guard struct {
	child    *child.Child
	lease    lease
	signals  *signals
	notices  *notices
	name     string // as texts name it
	onLost   string
	leave    <-chan struct{} // closed when the command is to end although the lock is held; nil: never
	wanted   <-chan struct{} // closed when others want the lock; nil: the command is not told
	onWanted os.Signal       // what the command gets then
	early    time.Duration   // trust left when the command gets TERM
	ttl      time.Duration
	maxEnd   time.Time // of the max hold; zero: none

	trustEnd   time.Time // until when the lease was trusted when it was last held
	killAt     time.Time // of a broken lease: when the command is killed; zero: it is not broken
	endReason  error     // why the command is to end; nil: it is not
	termSent   bool      // for endReason
	lostReason error     // why the lock is lost, or too near to that; nil: it is not
	killBy     time.Time // when a command that is to leave is killed; zero: it is not to leave, or was killed
	leaves     bool      // the command is to leave
	due        time.Time // when step was to be called
	asked      bool      // a signal that asks programs to end was passed on
	postponed  bool      // a step came late, and the next one decides about TERM
}

// lease is the part of a *holdfast.Lease that the guard needs.
type lease interface {
	Done() <-chan struct{}
	Err() error
	Until() time.Time
}

// superviseChild returns when the command has ended and has been waited for. The error says how the
// lock was lost, or why the command got TERM for fear of that.
func (g *guard) superviseChild() error {
	over := g.lease.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(g.step())
		select {
		case <-g.child.Done():
			return g.afterEnd()
		case <-over:
			over = nil // step sees it
		case <-g.leave:
			g.leave, g.leaves, g.killBy = nil, true, time.Now()
			if g.early > 0 && child.Groups {
				g.killBy = g.killBy.Add(g.early)
				g.child.Term()
			}
		case <-g.wanted:
			g.wanted = nil
			g.notices.printf("another wants %s: %v to the command", g.name, g.onWanted)
			g.child.Signal(g.onWanted)
		case s := <-g.signals.received:
			if s == cli.ContinueSignal {
				g.child.Resume()
			} else {
				g.asked = g.asked || slices.Contains(endSignals, s)
				g.child.Signal(s)
			}
		case s := <-g.child.Stopped():
			// While this process is stopped, nobody renews. The lock may be lost afterwards. Then
			// the command, which is stopped, ends without another step.
			g.child.Follow(s, func() bool { g.step(); return g.lostReason == nil || g.onLost != onLostKill })
			g.signals.listenAgain()
		case <-timer.C:
		}
	}
}

// step does what is due, and returns the time to the next step.
func (g *guard) step() time.Duration {
	now := time.Now()
	next := min(g.check(now), g.checkLeave(now))
	g.due = now.Add(next)
	return next
}

// checkLeave kills a command that was to leave and did not.
func (g *guard) checkLeave(now time.Time) time.Duration {
	left := g.killBy.Sub(now)
	switch {
	case g.killBy.IsZero():
		return time.Hour
	case left > 0:
		return left
	}
	g.killBy = time.Time{}
	g.child.Kill()
	if g.early > 0 && child.Groups {
		g.notices.printf("the command of %s did not end within %v: KILL to it", g.name, roundTime(g.early))
	}
	return time.Hour
}

// check is step at a moment.
func (g *guard) check(now time.Time) time.Duration {
	if g.lostReason != nil {
		return time.Hour
	}
	if err := g.readLease(); err != nil {
		return g.reactToLoss(err, now)
	}
	left, early := timeLeft(g.trustEnd, now), max(g.early, g.killReserve())
	if g.endReason == nil && left > early {
		g.postponed = false
		return min(left-early, checkEvery)
	}
	// If this process stood still, so did its renewals: the next one is on its way.
	late := !g.due.IsZero() && now.Round(0).Sub(g.due.Round(0)) > early/10
	if g.endReason == nil && !g.postponed && late {
		g.postponed = true
		return min(left, early) / 4
	}
	if g.endReason == nil {
		g.endReason = fmt.Errorf("no renewal of %s was confirmed in time", g.name)
		if !g.maxEnd.IsZero() && g.maxEnd.Sub(g.trustEnd) < g.ttl/3 {
			g.endReason = fmt.Errorf("the max hold of %s is over", g.name)
		}
		g.sendTerm(left)
	}
	if left <= g.killReserve() {
		return g.giveUp(g.endReason)
	}
	return max(min(left-g.killReserve(), checkEvery), time.Millisecond)
}

// readLease returns how the lease was lost. If it is held, look notes until when it is trusted.
func (g *guard) readLease() error {
	until := g.lease.Until() // first: of a lease that is lost in between, it is no end of trust
	err := g.lease.Err()
	if err == nil {
		g.trustEnd = until
	}
	return err
}

// reactToLoss reacts to a lost lease, and returns the time to the next step. A lease that an
// operator broke keeps others out until its release, or until its trust would have ended. So there
// is time for TERM. KILL follows if the command does not end.
func (g *guard) reactToLoss(lost error, now time.Time) time.Duration {
	if g.onLost != onLostKill || g.early == 0 || !child.Groups || !isBroken(lost) {
		return g.giveUp(lost)
	}
	if g.killAt.IsZero() {
		g.endReason = lost
		left := min(g.early, timeLeft(g.trustEnd.Add(-g.killReserve()), now))
		g.killAt = now.Add(left)
		if left > 0 && !g.termSent {
			g.sendTerm(left)
		}
	}
	left := timeLeft(g.killAt, now)
	if left <= 0 {
		return g.giveUp(lost)
	}
	return max(min(left, checkEvery), time.Millisecond)
}

// isBroken reports whether an operator broke the lease.
func isBroken(err error) bool {
	var lost *holdfast.LostError
	return errors.As(err, &lost) && lost.Reason == holdfast.LossBroken
}

// mayRun reports whether processes that the command started may go on after its end.
func (g *guard) mayRun(now time.Time) bool {
	if g.leaves && !now.Before(g.killBy) {
		return false
	}
	if g.readLease() == nil {
		return timeLeft(g.trustEnd, now) > g.killReserve()
	}
	return timeLeft(g.killAt, now) > 0
}

// killReserve is the trust that is left when a command is killed that did not end: a process takes
// time to die, and more on a busy machine.
func (g *guard) killReserve() time.Duration {
	if g.onLost != onLostKill {
		return 0
	}
	return min(g.ttl/50, 100*time.Millisecond)
}

// sendTerm asks the command to end while the lock is still held.
func (g *guard) sendTerm(left time.Duration) {
	if g.onLost != onLostIgnore && g.early > 0 && child.Groups {
		g.termSent = true
		g.child.Term()
		g.notices.printf("%v, %v are left: TERM to the command", g.endReason, roundTime(left))
	}
}

// giveUp does what --on-lost asks for. Nothing is due after that.
func (g *guard) giveUp(err error) time.Duration {
	g.lostReason = err
	switch g.onLost {
	case onLostKill:
		g.child.Kill()
		g.notices.printf("%v: KILL to the command", err)
	case onLostTerm:
		if !g.termSent {
			g.child.Term()
		}
		g.notices.printf("%v: the command may go on without it", err)
	default:
		g.notices.printf("%v: the command goes on without it", err)
	}
	return time.Hour
}

// afterEnd follows the end of a command. If the command ended for the lock's sake, the processes
// that it started end too, by the same moment.
func (g *guard) afterEnd() error {
	if g.lostReason == nil {
		g.lostReason = g.lease.Err()
	}
	if g.onLost == onLostKill && (g.termSent || g.leaves || g.lostReason != nil) {
		for g.child.Left() && g.mayRun(time.Now()) {
			time.Sleep(2 * time.Millisecond)
		}
		if g.child.Left() {
			g.child.Kill()
		}
	}
	switch {
	case g.lostReason != nil:
		return g.lostReason
	case g.termSent:
		return g.endReason
	}
	return nil
}

// timeLeft is the time until a moment, by the clock that is ahead: the wall clock or the monotonic.
func timeLeft(until, now time.Time) time.Duration {
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}
