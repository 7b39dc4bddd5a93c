package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/network"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/judge"
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

// watch looks at the masters of a quorum every now and then, until stop is called.
func (w *world) watch() (stop func()) {
	if w.plan.Mode != Quorum {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
			w.mu.Lock()
			w.checkMajorities()
			if n%50 == 0 {
				w.checkExpiries()
			}
			w.mu.Unlock()
		}
	}()
	return func() { cancel(); <-done }
}

// awaitCounting waits until all masters count.
func (w *world) awaitCounting() error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); sleep(time.Second) {
		nodes, err := w.own.Quorum(context.Background())
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(nodes, func(n lockinfo.Master) bool { return !n.Counts }) {
			return nil
		}
	}
	return errors.New("simulate: the masters never counted")
}

// checkExpiries looks for keys that would stay for ever. mu is held.
func (w *world) checkExpiries() {
	for i, host := range w.hosts {
		for _, key := range host.Keys() {
			if !tokenKeys.MatchString(key) && host.TTL(key) == 0 {
				w.addViolation(judge.Left, "key %s at server %d has no TTL", key, i)
			}
		}
	}
}

// checkMajorities checks what exclusion follows from: before the trust in a hold ends, fewer
// masters than a majority would let another in. So what is wrong shows also where nobody comes in
// time to make use of it. mu is held.
func (w *world) checkMajorities() {
	for name, holds := range w.live {
		for _, h := range holds {
			if h.reported || !h.Trusted() {
				continue
			}
			var lets []string
			for i, host := range w.hosts {
				if why := host.admits(name, h); why != "" {
					lets = append(lets, fmt.Sprintf("server %d: %s", i, why))
				}
			}
			if len(lets) > len(w.hosts)/2 {
				h.reported = true
				w.addViolation(judge.Overlap,
					"%s: %v, since %v, is trusted for %v, and a majority would let another in: %s",
					name, h, h.from.Sub(w.zero), time.Until(h.lease.Until()), strings.Join(lets, "; "))
			}
		}
	}
}

// factsKey is what a master knows of itself.
const factsKey = "holdfast:{%quorum}"

// admits returns why a master would let another in while a hold is trusted; empty: it would not.
func (h *host) admits(name string, held *holding) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.HGet(factsKey, "counts") == "" {
		return "" // it has no vote
	}
	h.clock.Tick()
	key, now := factsKey+":"+name, h.clock.Now().UnixMilli()
	until := now + time.Until(held.lease.Until()).Milliseconds()*99/100
	var known []string
	ids, _ := h.HKeys(key) // none if there is no such key
	for _, id := range ids {
		value := h.HGet(key, id)
		known = append(known, id+"="+value)
		if len(id) == 23 { // "-" and an id, which may begin so itself
			id = id[1:] // what remains of a hold that was broken keeps others out as the hold did
		}
		if held.matchesValue(name, id, value) && decimal(value[3:16]) >= until {
			return ""
		}
	}
	return fmt.Sprintf("at %d, not until %d: %s", now, until, strings.Join(known, " "))
}

// matchesValue reports whether a master's value is that of a hold, as far as can be told: of names
// behind a group's first the id is not known, and a master that refused its token has another.
func (h *holding) matchesValue(name, id, value string) bool {
	if token := h.tokens[name]; id == h.lease.Owner() || decimal(value[16:32]) <= token &&
		token <= decimal(value[32:48]) {
		return true
	}
	owner, label := ownerAndLabel(value[64:])
	return h.op.Owner != "" && owner == h.op.Owner || h.op.Owner == "" && len(h.op.Names) > 1 && label == h.client.name
}

func ownerAndLabel(payload string) (owner, label string) {
	parts := strings.SplitN(payload, ":", 5) // the TTL, and the lengths of channel, owner and extras
	text := parts[4]
	var ends [3]int
	at := 0
	for i := range ends {
		at += int(decimal(parts[i+1]))
		ends[i] = at
	}
	return text[ends[0]:ends[1]], text[ends[2]:]
}

// decimal reads what scripts write with leading zeros.
func decimal(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
