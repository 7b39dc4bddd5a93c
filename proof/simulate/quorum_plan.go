package simulate

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// recountTime is after which time a master that forgot counts again.
const recountTime = 25 * time.Second

// DrawQuorum makes the plan of a seed, on three or five independent masters.
func DrawQuorum(seed uint64) Plan {
	d := newDice(seed, "quorum")
	p := Plan{Seed: seed, Mode: Quorum, Length: runLength}
	for range 3 + d.IntN(2) {
		p.Latency = append(p.Latency, d.Between(50*time.Microsecond, time.Millisecond))
	}
	for range 3 + 2*max(0, d.IntN(4)-2) {
		p.Servers = append(p.Servers, Server{Drift: drift(d), Latency: d.Short(0, 5*time.Millisecond)})
	}
	p.drawOps(d, quorumMix)
	p.drawQuorumFaults(d)
	p.drawClocks(newDice(seed, "clocks"))
	p.drawOperators(newDice(seed, "operator"))
	return p
}

// pathTroubles are the troubles between one client and one master.
var pathTroubles = []Trouble{Silence, Silence, Silence, Silence, Silence, Slow, Slow, LoseRest, LoseRest, LoseRest,
	LoseRest, Duplicate, Duplicate, Cut, LoseMessages}

// drawQuorumFaults draws stretches of trouble in which a third of all paths, or fewer, are troubled
// at a time.
func (p *Plan) drawQuorumFaults(d dice) {
	var last time.Duration // when a master forgot
	for at := d.Between(time.Second, 10*time.Second); ; at += recoveryTime + d.Between(10*time.Second, 30*time.Second) {
		end := min(at+d.Between(time.Minute, 8*time.Minute), workEnd-recoveryTime)
		if end < at+30*time.Second {
			break
		}
		paths := float64(len(p.Latency) * len(p.Servers))
		last = p.drawForgetting(d, at, end-15*time.Second, last)
		p.drawPartitions(d, at, end)
		gap := time.Duration(float64(8*time.Second) / paths / (0.05 + 0.3*d.Float64())) // of faults of 2 s on average
		for ; at < end; at += d.Short(0, gap) {
			f := Fault{At: at, For: min(end-at, d.Short(20*time.Millisecond, 8*time.Second)),
				Client: d.IntN(len(p.Latency)), Server: d.IntN(len(p.Servers))}
			f.Kind = pathTroubles[d.IntN(len(pathTroubles))]
			switch roll := d.IntN(100); {
			case roll < 1:
				f.Kind = []Trouble{Kill, Vanish}[d.IntN(2)]
			case roll < 3:
				f.Kind, f.For = Refuse, min(f.For, 2*time.Second)
			case roll < 25: // what is sent in a moment comes long after what is sent then
				f.Kind, f.For, f.Delay = Slow, min(f.For,
					d.Short(time.Millisecond, 400*time.Millisecond)), d.Between(50*time.Millisecond, 4*time.Second)
			}
			p.drawDetails(d, &f, end)
			p.Faults = append(p.Faults, f)
		}
	}
	p.sortFaults()
}

// drawPartitions keeps some clients from one master each for longer, so that what they hold is at
// no more than a majority.
func (p *Plan) drawPartitions(d dice, at, end time.Duration) {
	for at < end {
		long := min(end-at, d.Between(5*time.Second, 40*time.Second))
		for client := range p.Latency {
			if d.Percent(40) {
				p.Faults = append(p.Faults, Fault{At: at, For: long, Client: client, Server: d.IntN(len(p.Servers)),
					Kind: Silence, Way: network.Way(d.IntN(2)), Both: d.Percent(50)})
			}
		}
		at += long
	}
}

// drawForgetting lets one master after the other lose its memory amid a hold, each after the last
// counts again, and returns when the last did.
func (p *Plan) drawForgetting(d dice, from, to, last time.Duration) time.Duration {
	for i := range p.Ops {
		op := &p.Ops[i]
		at := op.At + d.Short(0, op.Hold)
		if op.Hold < 300*time.Millisecond || at < last+recountTime || at < from || at > to || d.Percent(50) {
			continue
		}
		last = at
		p.Faults = append(p.Faults, Fault{At: at, For: d.Short(time.Millisecond, 3*time.Second),
			Server: d.IntN(len(p.Servers)),
			Kind:   []Trouble{Restart, Flush, ForgetDown, ForgetDown, ForgetDown}[d.IntN(5)]})
	}
	return last
}
