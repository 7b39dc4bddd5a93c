package simulate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
)

// A Plan is all that is decided before a run, from its seed alone.
type Plan struct {
	Seed    uint64
	Mode    Mode
	Latency []time.Duration // one way, of each client; there are as many
	Servers []Server        // one; in mode Quorum three or five
	Strict  bool            // every goroutine stands in the server's queue itself
	Ops     []Op            // in the order of time
	Faults  []Fault         // in the order of time

	Operators []Operation   // in the order of time
	Crew      Crew          // it shares out shards
	Length    time.Duration // when clients are closed
}

// A Server is one, with what makes it differ from others.
type Server struct {
	Shows   time.Time     // its clock, at the begin
	Drift   float64       // how much faster its clock runs
	Latency time.Duration // one way, besides that of the client
}

// A Mode says which faults a run has, and so which checks it can stand.
type Mode string

// The modes. Calm has no faults at all; Network those that no promise excepts; Forget and Clock
// have them too, and some that let another in beside a holder, by design, until the holder's next
// renewal.
const (
	Calm    Mode = "calm"
	Network Mode = "network"
	Forget  Mode = "forget" // the server loses its data, an operator deletes keys
	Clock   Mode = "clock"  // the server's clock is set
	Quorum  Mode = "quorum" // independent masters, each with faults of its own; at most one at a time forgets
)

// An Op is one lock operation: to ask for a hold, to use it and to give it back.
type Op struct {
	ID     int
	At     time.Duration // since the begin of the run
	Client int
	Type   history.Type
	Shares bool // a reader
	Names  []string
	Weight int64 // permits
	Owner  string

	TTL           time.Duration
	MinHold       time.Duration
	MaxHold       time.Duration
	Fixed, Strict bool
	Retain        bool          // its name may stay with its process
	Try           bool          // ask once
	Poll          bool          // ask every now and then
	Limit         time.Duration // of waiting
	Cancel        bool          // rather than a deadline
	Hold          time.Duration
	Inner         Inner // what is done in the middle of the hold
	Forgotten     bool  // never given back; its end is its TTL
	Twice         bool  // given back twice

	RunsOn time.Duration // how long its code runs on after an operator broke the hold
}

func (op *Op) writes() bool { return op.Type == history.ReadWrite && !op.Shares }

// An Inner is what a holder does with its lease.
type Inner string

// The things that a holder may do.
const (
	Nothing   Inner = ""
	Reenter   Inner = "reenter"
	Look      Inner = "look" // Lease.Check
	Downgrade Inner = "downgrade"
)

const (
	runLength  = time.Hour
	quietTail  = 3 * time.Minute       // the end of a run, in which no operation begins
	workEnd    = runLength - quietTail // of the last operation's begin
	minOps     = 520
	maxPermits = 3
	longestTTL = 10 * time.Second
	retainTime = 10 * time.Second
)

var ttls = []time.Duration{400 * time.Millisecond, time.Second, 3 * time.Second, longestTTL}

// A mix is what a run draws its operations from.
type mix struct {
	types   []history.Type // more often those that are more likely to matter
	various bool           // bursts may have owners, and each operation has a TTL of its own
}

var (
	serverMix = mix{types: []history.Type{history.Mutex, history.Mutex, history.Mutex, history.ReadWrite,
		history.ReadWrite, history.Semaphore, history.Election, history.Group, history.Group}}
	quorumMix = mix{[]history.Type{history.Mutex, history.Mutex, history.Mutex, history.Mutex, history.ReadWrite,
		history.ReadWrite, history.Group}, true}
)

// The names that a run locks. The names of the groups are held together.
var (
	locks  = []string{"mutex-1", "mutex-2", "rw", "permits", "lead", "group-1", "group-2", "group-3"}
	groups = locks[5:]
)

// class returns the name, or what stands for all that is held together.
func class(name string) string {
	if slices.Contains(groups, name) {
		return "group"
	}
	return name
}

// Draw makes the plan of a seed.
func Draw(seed uint64) Plan {
	d := newDice(seed, "holdfast")
	p := Plan{Seed: seed, Mode: Calm, Servers: make([]Server, 1), Length: runLength}
	switch roll := d.IntN(100); {
	case roll < 15:
	case roll < 60:
		p.Mode = Network
	case roll < 80:
		p.Mode = Forget
	default:
		p.Mode = Clock
	}
	p.Strict = d.Percent(50)
	for range 3 + d.IntN(4) {
		p.Latency = append(p.Latency, d.Between(50*time.Microsecond, time.Millisecond))
	}
	if p.Mode != Calm {
		p.Servers[0].Drift = drift(d)
	}
	p.drawOps(d, serverMix)
	if p.Mode != Calm {
		p.drawFaults(d)
	}
	p.drawClocks(newDice(seed, "clocks"))
	p.drawOperators(newDice(seed, "operator"))
	p.drawRetained(newDice(seed, "retain"))
	p.drawCrew(newDice(seed, "shards"))
	return p
}

// drawRetained makes most names stay with their processes. Some operations are done again and
// again. Where each goroutine stands in the queue, nothing is retained.
func (p *Plan) drawRetained(d dice) {
	var again []Op
	for i := range p.Ops {
		op := &p.Ops[i]
		op.Retain = (op.Type == history.Mutex || op.Type == history.ReadWrite) && !op.Fixed && !op.Poll && !op.Strict &&
			op.MinHold == 0 && op.MaxHold == 0
		if !op.Retain || !d.Percent(15) {
			continue
		}
		for next, n := *op, 5+d.IntN(10); n > 0; n-- {
			next.At += d.Short(10*time.Millisecond, time.Second)
			next.Hold = d.Short(0, 20*time.Millisecond)
			again = append(again, next)
		}
	}
	p.Ops = append(p.Ops, again...)
	p.sortOps()
}

// Until returns what a plan has until some time, in which all must have come right.
func (p Plan) Until(end time.Duration) Plan {
	last := end - quietTail
	p.Crew = p.Crew.earlier(p.Length - end)
	p.Length = end
	p.Ops = slices.DeleteFunc(slices.Clone(p.Ops), func(op Op) bool { return op.At > last })
	p.Operators = slices.DeleteFunc(slices.Clone(p.Operators), func(o Operation) bool { return o.At > last })
	p.Faults = slices.DeleteFunc(slices.Clone(p.Faults), func(f Fault) bool { return f.At > last-recoveryTime })
	return p
}

// drawOps draws bursts, so that there is something to wait for.
func (p *Plan) drawOps(d dice, mix mix) {
	for len(p.Ops) < minOps {
		at := d.Between(5*time.Second, workEnd)
		typ := mix.types[d.IntN(len(mix.types))]
		ttl, name := ttls[d.IntN(len(ttls))], locks[d.IntN(2)]
		wide := d.Short(10*time.Millisecond, 5*time.Second)
		owned := mix.various && d.Percent(30)
		for range 4 + d.IntN(6) {
			op := Op{At: at + d.Short(0, wide), Client: d.IntN(len(p.Latency)), Type: typ, TTL: ttl, Strict: p.Strict}
			op.drawNames(d, name)
			if mix.various {
				op.TTL = ttls[d.IntN(len(ttls))]
			}
			p.drawUse(d, &op)
			if owned && len(op.Names) == 1 && d.Percent(70) {
				op.Owner = "owner-" + strconv.Itoa(d.IntN(2))
			}
			p.Ops = append(p.Ops, op)
		}
	}
	p.sortOps()
	p.addMinHolds()
}

// drawNames draws what an operation of a kind locks; a mutex has the name of its burst. Of those
// that write, some read, and a group of one name is a mutex.
func (op *Op) drawNames(d dice, name string) {
	switch op.Type {
	case history.Mutex:
		op.Names = []string{name}
	case history.ReadWrite:
		op.Names = []string{"rw"}
		op.Shares = d.Percent(60)
	case history.Semaphore:
		op.Names, op.Weight = []string{"permits"}, 1+d.Int64N(maxPermits)
	case history.Election:
		op.Names = []string{"lead"}
	case history.Group:
		for _, i := range d.Perm(len(groups))[:1+d.IntN(len(groups))] {
			op.Names = append(op.Names, groups[i])
		}
		if len(op.Names) == 1 {
			op.Type = history.Mutex
		}
	}
}

// sortOps puts the operations in the order of their times, and numbers them.
func (p *Plan) sortOps() {
	slices.SortStableFunc(p.Ops, func(a, b Op) int { return cmp.Compare(a.At, b.At) })
	for i := range p.Ops {
		p.Ops[i].ID = i
	}
}

// addMinHolds gives a min hold to every eighth operation that can have one.
func (p *Plan) addMinHolds() {
	for i := 0; i < len(p.Ops); i += 8 {
		op := &p.Ops[i]
		if (op.Type == history.Mutex || op.writes()) && op.Inner != Downgrade && op.MaxHold == 0 {
			op.MinHold = min(2*op.TTL, 4*time.Second)
		}
	}
}

// drawUse draws how an operation waits, holds and ends.
func (p *Plan) drawUse(d dice, op *Op) {
	op.Limit = d.Between(70*time.Second, 120*time.Second)
	switch roll := d.IntN(100); {
	case roll < 15:
		op.Try = true
	case roll < 35:
		op.Limit, op.Cancel = d.Short(time.Millisecond, 5*time.Second), d.Percent(50)
	case roll < 40 && !p.Strict:
		op.Poll, op.Limit = true, d.Between(time.Second, 20*time.Second)
	}
	switch roll := d.IntN(100); {
	case roll < 50:
		op.Hold = d.Short(0, 50*time.Millisecond)
	case roll < 85:
		op.Hold = d.Between(50*time.Millisecond, 2*time.Second)
	default:
		op.Hold = d.Between(2*time.Second, 15*time.Second)
	}
	switch roll := d.IntN(100); {
	case roll < 10:
		op.Fixed, op.Forgotten = true, d.Percent(50)
	case roll < 15:
		op.MaxHold = 2 * op.TTL
	}
	op.Inner = []Inner{Nothing, Nothing, Nothing, Reenter, Look, Downgrade}[d.IntN(6)]
	if op.Inner == Downgrade && !op.writes() || op.Inner == Reenter && op.Type == history.Semaphore {
		op.Inner = Nothing
	}
	op.Twice = d.Percent(5)
}

// A dice draws decisions.
type dice = harness.Dice

// newDice returns the dice of a seed for one part of a plan, whose name has at most eight bytes.
// Each part has its own, so that it changes nothing in the others.
func newDice(seed uint64, part string) dice {
	var stream uint64
	for _, b := range []byte(part) {
		stream = stream<<8 | uint64(b)
	}
	return dice{Rand: rand.New(rand.NewPCG(seed, stream))}
}

// drift is by how much faster than ours a clock may run.
func drift(d dice) float64 { return 0.018*d.Float64() - 0.009 }

// drawMoment draws a time: any number of digits, some years in which a digit comes or clocks begin,
// or a time of now.
func drawMoment(d dice) time.Time {
	within := time.Duration(d.Int64N(int64(runLength)))
	const latest = 1 << 52 // microseconds, in 2112
	switch roll := d.IntN(100); {
	case roll < 30:
		return time.UnixMicro(int64(math.Exp(d.Float64() * math.Log(latest)))).Add(runLength)
	case roll < 45:
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(within)
	case roll < 65: // the microseconds get their sixteenth digit, and the milliseconds their thirteenth
		return time.UnixMicro(1e15).Add(-within)
	}
	return time.Date(2026+d.IntN(30), 1, 1, 0, 0, 0, 0, time.UTC).Add(within)
}

func (p *Plan) drawClocks(d dice) {
	for i := range p.Servers {
		p.Servers[i].Shows = drawMoment(d)
	}
}

// sortFaults puts the faults in the order of their times.
func (p *Plan) sortFaults() {
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
}
