package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A load is many goroutines of several clients that lock a few names, and what came of it. Each name stands for a number in a
// storage that refuses tokens smaller than the largest it has seen. Whoever has a lease reads the number, and writes one more
// later, without a look at the lease: nothing but tokens protects it.
type load struct {
	t      *testing.T
	names  int
	enough func() bool // it goes on until this is so, and there are holds that show something, if it comes true at all; nil: always so
	spares bool        // waits that took too long do not end it

	mu       sync.Mutex
	holders  map[string]*holdfast.Lease
	tokens   map[string]int64
	numbers  map[string]*number
	holds    int
	overlaps int
	smaller  int // tokens
	stuck    int // waits that took too long
	lost     int // leases, before their release
	unsure   int // releases
	other    []error
	longest  time.Duration // a wait
	updates  int
	late     int // reads and writes that were refused
	spoiled  int // writes that were refused, and would have overwritten another's
	gone     int // updates that were overwritten
}

type number struct{ value, token int64 }

// fewest holds show something.
const fewest = 10

// mostErrors end a load: more of them say nothing new.
const mostErrors = 100

// run lets them lock until a time is over, or until each goroutine did its rounds when they are given; and until it is enough.
// A wait that took too long ends the load, and so do many errors: the load has failed, and each
// further wait may take as long.
func (l *load) run(clients []*holdfast.Client, goroutines, rounds int, long time.Duration) {
	l.holders, l.tokens, l.numbers = map[string]*holdfast.Lease{}, map[string]int64{}, map[string]*number{}
	end := time.Now().Add(long)
	late := end.Add(patience)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	more := func(round int) bool {
		if l.failed() {
			stop()
			return false
		}
		return round < rounds || rounds == 0 && time.Now().Before(end) || !l.shows() && time.Now().Before(late)
	}
	var all sync.WaitGroup
	for i, c := range clients {
		for j := range goroutines {
			all.Go(func() {
				for n := 0; more(n); n++ {
					l.once(ctx, c, fmt.Sprint("n", (i*goroutines+j+n)%l.names))
				}
			})
		}
	}
	all.Wait()
}

// failed tells whether the load need not go on.
func (l *load) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stuck > 0 && !l.spares || len(l.other) >= mostErrors
}

func (l *load) shows() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds >= fewest && (l.enough == nil || l.enough())
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds
}

func (l *load) once(all context.Context, c *holdfast.Client, name string) {
	ctx, cancel := context.WithTimeout(all, patience)
	defer cancel()
	began := time.Now()
	lease, err := c.Mutex(name).Lock(ctx)
	took := time.Since(began)
	l.mu.Lock()
	l.longest = max(l.longest, took)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		l.stuck++
	case all.Err() != nil && errors.Is(err, context.Canceled): // the load has failed
	case err != nil:
		l.other = append(l.other, err)
	case lease.Err() == nil:
		l.holds++
		if before := l.holders[name]; before != nil && before.Err() == nil && lease.Err() == nil {
			l.overlaps++
		}
		if lease.Token() <= l.tokens[name] && lease.Err() == nil {
			l.smaller++
		}
		l.holders[name], l.tokens[name] = lease, max(l.tokens[name], lease.Token())
	}
	l.mu.Unlock()
	if err != nil {
		return
	}
	base, ok := l.read(name, lease.Token())
	pause(time.Duration(rand.IntN(2000)) * time.Microsecond)
	if ok {
		l.write(name, lease.Token(), base)
	}
	l.mu.Lock()
	if l.holders[name] == lease {
		delete(l.holders, name)
	}
	l.mu.Unlock()
	err = lease.Release(context.Background())
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

func (l *load) read(name string, token int64) (value int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.numbers[name]
	if n == nil {
		n = &number{}
		l.numbers[name] = n
	}
	if token < n.token {
		l.late++
		return 0, false
	}
	n.token = token
	return n.value, true
}

func (l *load) write(name string, token, base int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.numbers[name]
	if token < n.token {
		l.late++
		if n.value != base {
			l.spoiled++
		}
		return
	}
	if n.value != base {
		l.gone++
	}
	l.updates++
	n.value, n.token = base+1, token
}

// undisturbed fails when more than one of ten was lost, or given back without an answer, and some of each name: a hand-over is
// trusted for half a second at first, and a busy machine may stand still for as long, now and then.
func (l *load) undisturbed(why string) {
	l.t.Helper()
	if l.lost+l.unsure > l.holds/10+4*l.names {
		l.t.Errorf("%d lost, %d uncertain: %s", l.lost, l.unsure, why)
	}
}

// judge prints what came of it, and fails when anything was done wrong that no fault excuses.
func (l *load) judge(what string) {
	l.t.Helper()
	l.t.Logf("%s: %d holds, %d overlaps, %d tokens not larger, %d stuck, %d lost, %d releases uncertain, the longest wait %v;"+
		" %d updates, %d late ones refused, %d of which would have overwritten another's, %d updates lost", what, l.holds, l.overlaps,
		l.smaller, l.stuck, l.lost, l.unsure, l.longest.Round(time.Millisecond), l.updates, l.late, l.spoiled, l.gone)
	if l.overlaps > 0 || l.smaller > 0 || l.stuck > 0 || l.gone > 0 {
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
