package lateness

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// known returns mixes in which a waiter that was told of nothing entered when it asked by itself:
// up to six seconds late. All is over before it does so, four seconds after it came. The last
// caller of each is the one to look at.
func known() []Mix {
	const s = time.Second
	holds := func(d time.Duration) Caller { return Caller{TTL: time.Minute, Weight: 1, For: d} }
	keeps := func(minHold, d time.Duration, weight int64) Caller {
		return Caller{TTL: time.Minute, Weight: weight, MinHold: minHold, For: d}
	}
	reads := func(d time.Duration) Caller { return Caller{TTL: time.Minute, Shared: true, For: d} }
	runsOut := func(ttl time.Duration) Caller { return Caller{TTL: ttl, Weight: 1, RunsOut: true} }
	readsAndRunsOut := Caller{TTL: s, Shared: true, RunsOut: true}
	givesUp := Caller{TTL: time.Minute, Weight: 1, Wait: 2 * s}
	of := func(c Caller) Caller { c.Owner = "o"; return c }
	const long = time.Minute

	mix := func(name string, kind protocol.Kind, permits int64, callers ...Caller) Mix {
		for i := range callers {
			c := &callers[i]
			c.Process, c.At = i, time.Duration(i)*10*time.Millisecond
			c.Shared = c.Shared || kind == protocol.Semaphore
		}
		return Mix{Name: name, Kind: kind, Permits: permits, Callers: callers}
	}
	mutex := func(name string, callers ...Caller) Mix { return mix(name, protocol.Mutex, 0, callers...) }
	rwMutex := func(name string, callers ...Caller) Mix { return mix(name, protocol.ReadWrite, 0, callers...) }
	semaphore := func(name string, permits int64, callers ...Caller) Mix {
		return mix(name, protocol.Semaphore, permits, callers...)
	}
	return []Mix{
		rwMutex("readers that a min hold kept out enter together", keeps(2*s, s, 1), reads(s), reads(s)),
		semaphore("permits that a min hold kept go to several", 2, keeps(2*s, s, 2), holds(s), holds(s)),
		mutex("a lease that was handed over runs out", holds(s), runsOut(s), holds(s)),
		rwMutex("a reader's lease that was handed over runs out", holds(s), readsAndRunsOut, holds(s)),
		mutex("a lease for which its caller asked after a min hold runs out", keeps(2*s, s, 1), runsOut(s), holds(s)),
		semaphore("a lease runs out before a min hold beside it", 3,
			keeps(5*s, s/2, 1), holds(s), holds(2*s), runsOut(2*s), holds(long), holds(s)),
		semaphore("a lease runs out, and the first in the queue came there since", 2,
			holds(s), holds(2*s), runsOut(2*s), holds(long), holds(s)),
		semaphore("a lease runs out, and the first in the queue gave up", 2,
			holds(s), holds(long), runsOut(2*s), givesUp, holds(s)),
		semaphore("a lease that was asked for runs out, and the first in the queue came there since", 2,
			keeps(s, s/2, 2), runsOut(2*s), holds(s/2), holds(long), holds(s)),
		mutex("a lease that its owner took beside another runs out", of(holds(s)), holds(s), of(runsOut(2*s))),
	}
}
