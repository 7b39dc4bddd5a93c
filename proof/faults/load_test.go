package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// A load is many goroutines of several clients that lock a few names, and what came of it. Each
// name stands for a number in a storage that checks tokens. A holder reads the number, and writes
// one more later, without a look at its lease: nothing but tokens protects it.
type load struct {
	t      *testing.T
	names  int
	enough func() bool // it goes on until this is so, and there are holds that show something, if it comes true at all; nil: always so
	spares bool        // waits that took too long do not end it

	mu       sync.Mutex
	holders  map[string][]mutexHold
	tokens   map[string]judge.Tokens
	stored   judge.Storage
	holds    int
	overlaps int
	smaller  int // tokens
	stuck    int // waits that took too long
	lost     int // leases, before their release
	unsure   int // releases
	other    []error
	longest  time.Duration // a wait
}

// A mutexHold is a lease of a mutex, for the judge.
type mutexHold struct{ *holdfast.Lease }

// Claim implements judge.Holder.
func (h mutexHold) Claim() judge.Claim { return judge.Claim{} }

// Trusted implements judge.Holder.
func (h mutexHold) Trusted() bool { return h.Err() == nil }

// fewest holds show something.
const fewest = 10

// mostErrors end a load: more of them say nothing new.
const mostErrors = 100

// run lets them lock until a time is over, or until each goroutine did its rounds when they are
// given; and until it is enough. A wait that took too long ends the load, and so do many errors:
// the load has failed, and each further wait may take as long.
func (l *load) run(clients []*holdfast.Client, goroutines, rounds int, long time.Duration) {
	l.holders, l.tokens, l.stored = map[string][]mutexHold{}, map[string]judge.Tokens{}, judge.Storage{}
	end := time.Now().Add(long)
	late := end.Add(harness.Patience)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	more := func(round int) bool {
		if l.hasFailed() {
			stop()
			return false
		}
		return round < rounds || rounds == 0 && time.Now().Before(end) || !l.showsEnough() && time.Now().Before(late)
	}
	var all sync.WaitGroup
	for i, c := range clients {
		for j := range goroutines {
			all.Go(func() {
				for n := 0; more(n); n++ {
					l.lockOnce(ctx, c, fmt.Sprint("n", (i*goroutines+j+n)%l.names))
				}
			})
		}
	}
	all.Wait()
}

// hasFailed reports whether the load need not go on.
func (l *load) hasFailed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stuck > 0 && !l.spares || len(l.other) >= mostErrors
}

func (l *load) showsEnough() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds >= fewest && (l.enough == nil || l.enough())
}

func (l *load) countHolds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds
}

func (l *load) lockOnce(all context.Context, c *holdfast.Client, name string) {
	ctx, cancel := context.WithTimeout(all, harness.Patience)
	defer cancel()
	began := time.Now()
	lease, err := c.Mutex(name).Lock(ctx)
	took := time.Since(began)
	l.judgeGrant(all, name, lease, took, err)
	if err != nil {
		return
	}
	l.update(name, lease.Token())
	l.mu.Lock()
	l.holders[name] = slices.DeleteFunc(l.holders[name], func(h mutexHold) bool { return h.Lease == lease })
	l.mu.Unlock()
	err = lease.Release()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
	case errors.Is(err, holdfast.ErrLost):
		l.lost++
	case errors.Is(err, holdfast.ErrUncertain):
		l.unsure++
	default:
		l.other = append(l.other, err)
	}
}

// judgeGrant judges what came of a Lock.
func (l *load) judgeGrant(all context.Context, name string, lease *holdfast.Lease, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, took)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		l.stuck++
	case all.Err() != nil && errors.Is(err, context.Canceled): // the load has failed
	case err != nil:
		l.other = append(l.other, err)
	case lease.Err() == nil:
		l.holds++
		h, others := mutexHold{lease}, judge.Trusted(l.holders[name])
		rival := func(other mutexHold) bool { return other.Claim().Excludes(h.Claim()) }
		if slices.ContainsFunc(others, rival) && h.Trusted() {
			l.overlaps++
		}
		if !l.tokens[name].Grow(lease.Token(), false) && h.Trusted() {
			l.smaller++
		}
		l.holders[name], l.tokens[name] = append(others, h), l.tokens[name].With(lease.Token(), false)
	}
}

// update adds one to the number of a name, without a look at the lease.
func (l *load) update(name string, token int64) {
	l.mu.Lock()
	value, ok := l.stored.Read(name, token, false)
	l.mu.Unlock()
	pause(time.Duration(rand.IntN(2000)) * time.Microsecond)
	if ok {
		l.mu.Lock()
		l.stored.Write(name, token, value, value+1)
		l.mu.Unlock()
	}
}

// isUndisturbed fails when more than one of ten was lost, or given back without an answer, and some
// of each name: a hand-over is trusted for half a second at first, and a busy machine may stand
// still for as long, now and then.
func (l *load) isUndisturbed(why string) {
	l.t.Helper()
	if l.lost+l.unsure > l.holds/10+4*l.names {
		l.t.Errorf("%d lost, %d uncertain: %s", l.lost, l.unsure, why)
	}
}

// report prints what came of it, and fails when anything was done wrong that no fault excuses.
func (l *load) report(what string) {
	l.t.Helper()
	l.t.Logf("%s: %d holds, %d overlaps, %d tokens not larger, %d stuck, %d lost, %d releases uncertain, the longest wait %v;"+
		" %d updates, %d late ones refused, %d of which would have overwritten another's, %d updates lost", what,
		l.holds, l.overlaps,
		l.smaller, l.stuck, l.lost, l.unsure, l.longest.Round(time.Millisecond),
		l.stored.Count.Writes, l.stored.Count.Late, l.stored.Count.Spoiled, l.stored.Count.Lost)
	if l.overlaps > 0 || l.smaller > 0 || l.stuck > 0 || l.stored.Count.Lost > 0 {
		l.t.Error("not what was promised")
	}
	for i, err := range l.other {
		if i == 5 {
			break
		}
		l.t.Errorf("%d other errors: %v", len(l.other), err)
	}
	if l.holds < fewest {
		l.t.Errorf("%d holds show nothing", l.holds)
	}
}
