package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
	"github.com/holdfast-go/holdfast/shard"
)

// A Crew is the clients that share out some shards, in the last minutes of a run.
type Crew struct {
	Shards  int
	TTL     time.Duration
	Weights []int // of each client; 0: it takes no part
	From    time.Duration
	Until   time.Duration
	Absent  [][]Spell // of each client, in the order of time
}

// A Spell is a time in which a client takes no part.
type Spell struct{ At, For time.Duration }

const (
	shardSet   = "shards"
	shardTime  = 8 * time.Minute
	shardEnd   = 20 * time.Second      // before the run's, all leave
	shardSlow  = 50 * time.Millisecond // a function goes on for as long, times its shard, after its context
	shardLimit = 5 * time.Second       // besides two TTLs, until the shares are fair
)

func shardName(i int) string { return shardSet + "/" + strconv.Itoa(i) }

// names returns all that is locked alone or together.
func (p *Plan) names() []string {
	names := slices.Clone(locks)
	for i := range p.Crew.Shards {
		names = append(names, shardName(i))
	}
	return names
}

// drawCrew draws who shares out shards, and operators who break holds of them. The last quiet
// minutes of a run have some leaves too.
func (p *Plan) drawCrew(d dice) {
	c := &p.Crew
	c.Shards, c.TTL = 2+d.IntN(5), longestTTL
	if d.Percent(20) {
		c.TTL = 3 * time.Second
	}
	c.From, c.Until = p.Length-shardTime, p.Length-shardEnd
	for range p.Latency {
		weight := 1
		if d.Percent(20) {
			weight = d.IntN(3)
		}
		var absent []Spell
		for at := c.From; at < c.Until-time.Minute; {
			at += d.Between(20*time.Second, 3*time.Minute)
			absent = append(absent, Spell{at, d.Short(100*time.Millisecond, time.Minute)})
		}
		c.Weights, c.Absent = append(c.Weights, weight), append(c.Absent, absent)
	}
	for range 3 {
		name := shardName(d.IntN(c.Shards))
		if d.Percent(20) {
			name = shardSet
		}
		p.Operators = append(p.Operators, Operation{At: d.Between(c.From, c.Until-time.Minute),
			Client: d.IntN(len(p.Latency)), Name: name, Which: d.Uint64()})
	}
	p.sortOperators()
}

// earlier returns the crew so much earlier in a run.
func (c Crew) earlier(by time.Duration) Crew {
	c.From, c.Until, c.Absent = c.From-by, c.Until-by, slices.Clone(c.Absent)
	for i := range c.Absent {
		c.Absent[i] = slices.Clone(c.Absent[i])
		for k := range c.Absent[i] {
			c.Absent[i][k].At -= by
		}
	}
	return c
}

// scheduleCrew has the clients share out the shards, and looks every second whether all is fair.
func (w *world) scheduleCrew() {
	c := &w.plan.Crew
	for i, weight := range c.Weights {
		if weight > 0 {
			w.works.Go(func() { w.takePart(i, weight) })
		}
	}
	if c.Shards > 0 {
		w.works.Go(func() {
			for at := c.From; at < c.Until; at += time.Second {
				w.sleepUntil(at)
				w.checkShares()
			}
		})
	}
}

// takePart has one client after the other take part, from life to life.
func (w *world) takePart(i, weight int) {
	crew := &w.plan.Crew
	w.sleepUntil(crew.From)
	for _, absent := range append(slices.Clone(crew.Absent[i]), Spell{At: crew.Until}) {
		for time.Since(w.zero) < absent.At {
			c := w.client(i)
			ctx, cancel := context.WithDeadline(c.ctx, w.zero.Add(absent.At))
			w.noteShards(c, weight)
			set := shard.New(c.Client, shardSet, crew.Shards, shard.WithWeight(weight),
				shard.WithLock(holdfast.WithTTL(crew.TTL)))
			err := set.Run(ctx, func(ctx context.Context, n int) error { return w.workShard(ctx, c, i, n) })
			w.checkRun(ctx, c, err)
			cancel()
			sleep(100 * time.Millisecond)
		}
		sleep(absent.For)
	}
}

// noteShards notes that a client takes part, with a weight, or no more; it takes mu.
func (l *ledger) noteShards(c *client, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shardsAt = time.Now()
	if c == nil {
		return
	}
	if delete(l.crew, c); weight > 0 {
		l.crew[c] = weight
	}
}

// checkRun checks why a process takes part no more.
func (w *world) checkRun(ctx context.Context, c *client, err error) {
	w.noteShards(c, 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	var refused *holdfast.StoreError
	if ctx.Err() == nil && !c.dead && !(w.isTroubled() && errors.As(err, &refused)) {
		w.addViolation(judge.Failed, "the shards of %s: %v", c.name, err)
	}
}

// workShard is the function of a shard.
func (w *world) workShard(ctx context.Context, c *client, who, i int) error {
	lease, _ := holdfast.LeaseFrom(ctx)
	op := &Op{ID: len(w.plan.Ops) + i, Client: who, Type: history.Mutex, Names: []string{shardName(i)},
		TTL: w.plan.Crew.TTL, Try: true}
	h := w.endWait(w.beginWait(c, op), lease, nil)
	go func() {
		<-lease.Done()
		w.checkNotice(h)
	}()
	w.checkReturned(h)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), shard.ErrMoved) {
		w.noteShards(nil, 0)
	}
	sleep(time.Duration(i) * shardSlow)
	w.mu.Lock()
	defer w.mu.Unlock()
	h.released = true
	w.addEvent(c, op.ID, "returned", "")
	return context.Cause(ctx)
}

// checkReturned checks that no function of the shard runs that began before, unless its lease was
// lost; it takes mu.
func (l *ledger) checkReturned(h *holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.granted[h.op.Names[0]] {
		if other != h && !other.released && !other.excused && !other.client.dead && time.Now().After(l.excusedUntil) &&
			!errors.Is(other.lease.Err(), holdfast.ErrLost) {
			l.addViolation(judge.Overlap, "%v began before the function of %v had returned", h, other)
		}
	}
}

// checkShares checks that all shards have owners, and that the shares are fair, some time after the
// last fault and the last change of the members; it takes mu.
func (l *ledger) checkShares() {
	l.mu.Lock()
	defer l.mu.Unlock()
	crew := &l.plan.Crew
	if l.isTroubled() || len(l.crew) == 0 || time.Since(l.shardsAt) < 2*crew.TTL+shardLimit {
		return
	}
	l.counts["fair"]++
	has, sum := map[*client]int{}, 0
	for i := range crew.Shards {
		for _, h := range judge.Trusted(l.live[shardName(i)]) {
			has[h.client]++
		}
	}
	for _, weight := range l.crew {
		sum += weight
	}
	var text []string
	all, fair := 0, true
	for c, weight := range l.crew {
		all += has[c]
		fair = fair && has[c] >= crew.Shards*weight/sum && has[c] <= (crew.Shards*weight+sum-1)/sum
		text = append(text, fmt.Sprintf("%s (weight %d) %d", c.name, weight, has[c]))
	}
	if !fair || all != crew.Shards {
		slices.Sort(text)
		l.addViolation(judge.Stuck, "%d shards, %v after the last change: %s", crew.Shards, time.Since(l.shardsAt),
			strings.Join(text, ", "))
	}
}
