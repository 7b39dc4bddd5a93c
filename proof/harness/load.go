package harness

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
	"github.com/holdfast-go/holdfast/proof/judge"
)

// A Load is many goroutines of several clients that lock a few names, and what came of it. Each
// name stands for a number in a storage that checks tokens. A holder reads the number, and writes
// one more later, without a look at its lease: nothing but tokens protects it.
type Load struct {
	T      *testing.T
	Names  []string
	Enough func() bool // it goes on until this is so and some hold, if that comes true at all; nil: always so
	Spares bool        // neither long waits nor many errors end it

	// Retains lets each client retain a name that it locks again and again, and that the next
	// client wants now and then.
	Retains bool

	mu      sync.Mutex
	holders map[string][]mutexHold
	tokens  map[string]judge.Tokens
	stored  judge.Storage
	Counts
}

// Counts are what came of a load so far.
type Counts struct {
	Holds    int
	Overlaps int
	Smaller  int // tokens
	Stuck    int // waits that took too long
	Lost     int // leases, before their release
	Unsure   int // releases
	Others   []error
	Longest  time.Duration // a wait
	First    time.Time     // when the first hold began, or the first since ForgetFirst
}

// Seen returns the counts of a load that goes on.
func (l *Load) Seen() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Counts
}

// ForgetFirst makes the next hold the first.
func (l *Load) ForgetFirst() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.First = time.Time{}
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

// Run lets them lock until a time is over, or until each goroutine did its rounds when they are
// given; and until it is enough. A wait that took too long ends the load, and so do many errors:
// the load has failed, and each further wait may take as long.
func (l *Load) Run(clients []*holdfast.Client, goroutines, rounds int, long time.Duration) {
	end := time.Now().Add(long)
	late := end.Add(Patience)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l.start(ctx, clients, goroutines, func(round int) bool {
		if l.hasFailed() {
			stop()
			return false
		}
		return round < rounds || rounds == 0 && time.Now().Before(end) || !l.showsEnough() && time.Now().Before(late)
	}).Wait()
}

// Start lets them lock until stop is called, or the test is over.
func (l *Load) Start(clients []*holdfast.Client, goroutines int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	all := l.start(ctx, clients, goroutines, func(int) bool { return ctx.Err() == nil })
	stop = func() { cancel(); all.Wait() }
	l.T.Cleanup(stop)
	return stop
}

func (l *Load) start(ctx context.Context, clients []*holdfast.Client, goroutines int,
	more func(round int) bool) *sync.WaitGroup {
	l.holders, l.tokens = map[string][]mutexHold{}, map[string]judge.Tokens{}
	all := new(sync.WaitGroup)
	for i, c := range clients {
		for j := range goroutines {
			all.Go(func() {
				for n := 0; more(n); n++ {
					if l.Retains && j%2 == 1 {
						user := (i + n%10/9) % len(clients)
						l.lockOnce(ctx, c, fmt.Sprint("retained ", user), holdfast.WithRetain(200*time.Millisecond))
						continue
					}
					l.lockOnce(ctx, c, l.Names[(i*goroutines+j+n)%len(l.Names)])
				}
			})
		}
	}
	return all
}

// hasFailed reports whether the load need not go on.
func (l *Load) hasFailed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.Spares && (l.Stuck > 0 || len(l.Others) >= mostErrors)
}

func (l *Load) showsEnough() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Holds >= fewest && (l.Enough == nil || l.Enough())
}

func (l *Load) lockOnce(all context.Context, c *holdfast.Client, name string, options ...holdfast.Option) {
	ctx, cancel := context.WithTimeout(all, Patience)
	defer cancel()
	began := time.Now()
	lease, err := c.Mutex(name, options...).Lock(ctx)
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
		l.Lost++
	case errors.Is(err, holdfast.ErrUncertain):
		l.Unsure++
	default:
		l.Others = append(l.Others, err)
	}
}

// judgeGrant judges what came of a Lock.
func (l *Load) judgeGrant(all context.Context, name string, lease *holdfast.Lease, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Longest = max(l.Longest, took)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		l.Stuck++
	case all.Err() != nil && errors.Is(err, context.Canceled): // the load has failed
	case err != nil:
		l.Others = append(l.Others, err)
	case lease.Err() == nil:
		l.Holds++
		if l.First.IsZero() {
			l.First = time.Now()
		}
		h, others := mutexHold{lease}, judge.Trusted(l.holders[name])
		rival := func(other mutexHold) bool { return other.Claim().Excludes(h.Claim()) }
		if slices.ContainsFunc(others, rival) && h.Trusted() {
			l.Overlaps++
		}
		if !l.tokens[name].Grow(lease.Token(), false) && h.Trusted() {
			l.Smaller++
		}
		l.holders[name], l.tokens[name] = append(others, h), l.tokens[name].With(lease.Token(), false)
	}
}

// update adds one to the number of a name, without a look at the lease.
func (l *Load) update(name string, token int64) {
	l.mu.Lock()
	value, ok := l.stored.Read(name, token, false)
	l.mu.Unlock()
	<-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond)
	if ok {
		l.mu.Lock()
		l.stored.Write(name, token, value, value+1)
		l.mu.Unlock()
	}
}

// IsUndisturbed fails when more than one of ten was lost, or given back without an answer, and some
// of each name: a hand-over is trusted for half a second at first, and a busy machine may stand
// still for as long, now and then.
func (l *Load) IsUndisturbed(why string) {
	l.T.Helper()
	if l.Lost+l.Unsure > l.Holds/10+4*len(l.Names) {
		l.T.Errorf("%d lost, %d uncertain: %s", l.Lost, l.Unsure, why)
	}
}

// Report prints what came of it, and fails when anything was done wrong that no fault excuses.
func (l *Load) Report(what string) {
	l.T.Helper()
	l.T.Logf("%s: %d holds, %d overlaps, %d tokens not larger, %d stuck, %d lost, %d releases uncertain, the longest "+
		"wait %v;"+
		" %d updates, %d late ones refused, %d of which would have overwritten another's, %d updates lost", what,
		l.Holds, l.Overlaps,
		l.Smaller, l.Stuck, l.Lost, l.Unsure, l.Longest.Round(time.Millisecond),
		l.stored.Count.Writes, l.stored.Count.Late, l.stored.Count.Spoiled, l.stored.Count.Lost)
	if l.Overlaps > 0 || l.Smaller > 0 || l.Stuck > 0 || l.stored.Count.Lost > 0 {
		l.T.Error("not what was promised")
	}
	for i, err := range l.Others {
		if i == 5 {
			break
		}
		l.T.Errorf("%d other errors: %v", len(l.Others), err)
	}
	if l.Holds < fewest {
		l.T.Errorf("%d holds show nothing", l.Holds)
	}
}

// Names returns so many names.
func Names(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("n", i))
	}
	return names
}
