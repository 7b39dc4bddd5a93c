package simulate

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// A Fault is one trouble, at its time, until its end. The kind decides which of the fields mean
// something.
type Fault struct {
	At, For time.Duration
	Kind    Trouble
	Client  int // whose network or process it is
	Server  int
	Way     network.Way
	Both    bool          // ways
	Times   int           // how many requests it strikes
	Delay   time.Duration // or the step of a clock
	Name    string        // of a key
	Text    string        // of an error
}

// A Trouble is a kind of fault.
type Trouble string

// The troubles. In the modes Forget and Clock, some let another in beside a holder, by design.
const (
	Silence      Trouble = "silence"   // nothing arrives, nothing fails; what was written arrives later
	Slow         Trouble = "slow"      // all takes longer
	LoseRest     Trouble = "lose"      // a request, or an answer, and all behind it on its connection, is lost
	Duplicate    Trouble = "duplicate" // a request arrives a second time, later
	Cut          Trouble = "cut"       // its connections break
	CutAll       Trouble = "cut all"
	LoseMessages Trouble = "deafen" // messages to it are lost
	Kill         Trouble = "kill"   // its process ends; the server sees its connections break
	Vanish       Trouble = "vanish" // its host ends: the server sees nothing
	Restart      Trouble = "restart"
	Flush        Trouble = "script flush"
	Refuse       Trouble = "refuse" // the server answers scripts with an error

	ForgetAll  Trouble = "flushall"
	ForgetKey  Trouble = "del"
	ForgetDown Trouble = "restart empty"
	Step       Trouble = "clock"
)

// commonTroubles are the troubles of every mode but Calm, more often those that are more likely to
// matter.
var commonTroubles = []Trouble{
	Silence, Silence, Silence, Slow, LoseRest, LoseRest, LoseRest, LoseRest, Duplicate, Duplicate, Cut, CutAll,
	LoseMessages, Kill, Vanish, Restart, Flush, Refuse,
}

var refusals = []string{
	"OOM command not allowed when used memory > 'maxmemory'.",
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica.",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"BUSY Redis is busy running a script.",
}

// drawFaults draws stretches of trouble, with quiet in between in which all must come right.
func (p *Plan) drawFaults(d dice) {
	for at := d.Between(30*time.Second, 90*time.Second); ; at += recoveryTime + d.Between(10*time.Second, time.Minute) {
		end := at + d.Between(20*time.Second, 4*time.Minute)
		if end > workEnd-recoveryTime {
			break
		}
		for ; at < end; at += d.Short(100*time.Millisecond, 20*time.Second) {
			p.Faults = append(p.Faults, p.drawFault(d, at, end-at))
		}
	}
	p.sortFaults()
}

func (p *Plan) drawFault(d dice, at, left time.Duration) Fault {
	f := Fault{At: at, For: min(left, d.Short(20*time.Millisecond, 15*time.Second)), Client: d.IntN(len(p.Latency))}
	f.Kind = commonTroubles[d.IntN(len(commonTroubles))]
	if d.Percent(15) {
		switch p.Mode {
		case Forget:
			f.Kind = []Trouble{ForgetAll, ForgetKey, ForgetKey, ForgetDown}[d.IntN(4)]
		case Clock:
			f.Kind = Step
		}
	}
	p.drawDetails(d, &f, at+left)
	return f
}

// drawDetails draws what a fault's kind needs. It is in a stretch of trouble that ends at a time.
func (p *Plan) drawDetails(d dice, f *Fault, end time.Duration) {
	switch f.Kind {
	case Silence:
		f.Way, f.Both = network.Way(d.IntN(2)), d.Percent(60)
	case Slow:
		if f.Delay == 0 {
			f.Delay = d.Short(time.Millisecond, 2*time.Second)
		}
	case LoseRest:
		f.Way, f.Times = network.Way(d.IntN(2)), 1+d.IntN(3)
	case Duplicate:
		f.Times, f.Delay = 1+d.IntN(3), d.Short(0, 5*time.Second)
	case Restart, ForgetDown:
		f.For = min(f.For, 3*time.Second)
	case Refuse:
		f.For, f.Text = min(f.For, 5*time.Second), refusals[d.IntN(len(refusals))]
	case ForgetKey:
		f.Name = "{" + locks[d.IntN(len(locks))] + "}"
		if d.Percent(30) {
			f.Name += ":queue"
		}
	case Step:
		f.Delay = d.Short(time.Millisecond, 20*time.Second)
		if d.Percent(50) { // back, amid waiters: tokens must not come twice
			f.Delay = -f.Delay
			if next := slices.IndexFunc(p.Ops, func(op Op) bool { return op.At >= f.At }); next >= 0 {
				f.At = min(p.Ops[next].At+10*time.Millisecond, end)
			}
		}
	}
}

// forgetsHolds reports whether a fault lets another in beside a holder, by design; one of several
// servers does not.
func (l *ledger) forgetsHolds(f *Fault) bool {
	return l.plan.Mode != Quorum && (f.Kind == ForgetAll || f.Kind == ForgetKey || f.Kind == ForgetDown ||
		f.Kind == Step)
}

// recoveryTime returns how long after its end a fault excuses a waiter.
func (f *Fault) recoveryTime() time.Duration {
	if f.Kind == Step && f.Delay < 0 { // it ends what is there so much later
		return recoveryTime - f.Delay
	}
	if f.Kind == Duplicate {
		return recoveryTime + f.Delay
	}
	return recoveryTime
}
