package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

type callID struct{}

// A grammar is an observer that knows which event may follow which, for each call and name.
type grammar struct {
	t *testing.T

	mu       sync.Mutex
	state    map[string]holdfast.EventKind // the last event of a call about a name
	began    map[string]time.Time          // the lease of that call
	outcomes map[int]int                   // of a call: how many leases began, or were refused or given up
}

func newGrammar(t *testing.T) *grammar {
	return &grammar{t: t, state: map[string]holdfast.EventKind{}, began: map[string]time.Time{},
		outcomes: map[int]int{}}
}

func (g *grammar) Observe(e holdfast.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Context == nil || e.LockKind == "" || e.Name == "" {
		g.t.Errorf("incomplete: %+v", e)
		return
	}
	id, known := e.Context.Value(callID{}).(int)
	switch e.Kind {
	case holdfast.EventConfirmed, holdfast.EventRenewed, holdfast.EventRetried, holdfast.EventWatching:
		return
	}
	if !known {
		g.t.Errorf("not the caller's context: %+v", e)
		return
	}
	place := fmt.Sprintf("call %d, %s", id, e.Name)
	before := g.state[place]
	held := before == holdfast.EventGranted || before == holdfast.EventPassed
	waiting := before == holdfast.EventWaiting
	ok := true
	switch e.Kind {
	case holdfast.EventWaiting:
		ok = !held && !waiting && e.Contended
	case holdfast.EventGranted, holdfast.EventPassed:
		ok = !held && e.Contended == waiting && e.Err == nil
		g.began[place] = time.Now()
		g.outcomes[id]++
	case holdfast.EventRefused:
		ok = !held && !waiting && !e.Contended && e.Err != nil
		g.outcomes[id]++
	case holdfast.EventGaveUp:
		ok = !held && e.Contended == waiting && e.Err != nil
		g.outcomes[id]++
	case holdfast.EventReleased:
		ok = held && e.Held == time.Since(g.began[place])
	case holdfast.EventLost:
		ok = held && errors.Is(e.Err, holdfast.ErrLost)
	}
	if !ok {
		g.t.Errorf("%s: %v (contended: %v, %v) after %v", place, e.Kind, e.Contended, e.Err, before)
	}
	if e.Err != nil && !strings.HasPrefix(e.Err.Error(), "holdfast: ") {
		g.t.Errorf("%s: %v: the text is none for users: %v", place, e.Kind, e.Err)
	}
	g.state[place] = e.Kind
}

// over shows that every wait and every lease has ended.
func (g *grammar) over() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for place, last := range g.state {
		if last == holdfast.EventWaiting || last == holdfast.EventGranted || last == holdfast.EventPassed {
			g.t.Errorf("%s: nothing came after %v", place, last)
		}
	}
}

// A random caller takes and gives back locks of all kinds, in all ways.
type randomCaller struct {
	t       *testing.T
	random  *rand.Rand
	clients []*holdfast.Client
	observe *grammar
	last    *int // the last id of a call
}

func (r *randomCaller) chance(percent int) bool { return r.random.IntN(100) < percent }

func (r *randomCaller) pause(most time.Duration) {
	<-time.After(time.Duration(r.random.Int64N(int64(most))))
}

func (r *randomCaller) options() (out []holdfast.Option) {
	for _, option := range []holdfast.Option{
		holdfast.WithWait(time.Duration(1 + r.random.Int64N(int64(3*time.Second)))),
		holdfast.WithPolling(time.Duration(r.random.IntN(300)+1)*time.Millisecond, r.random.IntN(4)),
		holdfast.WithStrictOrder(),
		holdfast.WithMaxHold(300 * time.Millisecond),
		holdfast.WithoutRenewal(),
		holdfast.WithTTL(time.Second),
	} {
		if r.chance(20) {
			out = append(out, option)
		}
	}
	return out
}

// take takes something in some way. Single: it is about one name.
func (r *randomCaller) take(ctx context.Context) (lease *holdfast.Lease, single bool, err error) {
	c := r.clients[r.random.IntN(len(r.clients))]
	name, options := fmt.Sprintf("n%d", r.random.IntN(2)), r.options()
	methods := []func(context.Context) (*holdfast.Lease, error){
		c.Mutex(name, options...).Lock, c.Mutex(name, options...).Lock, c.Mutex(name, options...).TryLock,
		c.RWMutex("rw"+name, options...).Lock, c.RWMutex("rw"+name, options...).RLock,
		c.RWMutex("rw"+name, options...).TryRLock,
		func(ctx context.Context) (*holdfast.Lease, error) {
			return c.Semaphore("s"+name, 2, options...).Acquire(ctx, 1+r.random.Int64N(2))
		},
		c.Election("e"+name, options...).Campaign,
		func(ctx context.Context) (*holdfast.Lease, error) {
			ticket, err := c.Mutex(name).Ticket(context.Background(), 0)
			if err != nil { // no queue: then it is as any other
				return c.Mutex(name).Lock(ctx)
			}
			return c.Attach(ctx, ticket)
		},
		c.All([]string{"n0", "n1"}, options...).Lock, c.All([]string{"n0", "n1"}, options...).TryLock,
	}
	n := r.random.IntN(len(methods))
	lease, err = methods[n](ctx)
	return lease, n < len(methods)-2, err
}

// once makes one call, and lives with what it got.
func (r *randomCaller) once() {
	r.observe.mu.Lock()
	*r.last++
	id := *r.last
	r.observe.mu.Unlock()
	ctx, cancel := context.WithTimeout(
		context.WithValue(context.Background(), callID{}, id), time.Duration(1+r.random.Int64N(int64(4*time.Second))))
	defer cancel()
	lease, single, err := r.take(ctx)
	r.observe.mu.Lock()
	outcomes := r.observe.outcomes[id]
	r.observe.mu.Unlock()
	if single && outcomes > 1 || outcomes == 0 && !errors.Is(err, holdfast.ErrClosed) {
		r.t.Errorf("call %d returned %v, and the observer was told of %d outcomes", id, err, outcomes)
	}
	if err != nil {
		return
	}
	var inner *holdfast.Lease
	if r.chance(20) { // a reentry, which may outlive the lease
		inner, _ = r.clients[0].Mutex(lease.Name()).TryLock(context.WithValue(leased.Context(lease), callID{}, -id))
	}
	r.pause(time.Second)
	if r.chance(20) {
		_ = lease.Downgrade(ctx)
	}
	if r.chance(20) {
		_ = lease.Extend(ctx)
	}
	if r.chance(30) { // it leaves its process, and another one may take it up
		if ticket, err := lease.Detach(); err == nil && r.chance(80) {
			r.observe.mu.Lock()
			*r.last++
			other := context.WithValue(context.Background(), callID{}, *r.last)
			r.observe.mu.Unlock()
			r.pause(time.Second)
			if attached, err := r.clients[r.random.IntN(len(r.clients))].Attach(other, ticket); err == nil {
				lease = attached
				r.pause(time.Second)
			}
		}
	}
	if r.chance(90) { // else Close gives it back
		_ = lease.Release()
	}
	if inner != nil {
		r.pause(100 * time.Millisecond)
		_ = inner.Release()
	}
}

// Each Waiting is followed by exactly one of Granted, Passed, GaveUp and Refused of the same call,
// and each Granted or Passed by exactly one of Released and Lost: in random operations on all kinds
// of locks, with losses, and a Close in the middle of them.
func TestEventsOfRandomCalls(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memory.New(protocol.Features{Queue: seed%3 != 0})
				seen := newGrammar(t)
				var clients []*holdfast.Client
				for range 3 {
					client, err := holdfast.NewOn(server.Connect("p"), &holdfast.Config{Observer: seen})
					must(t, err)
					clients = append(clients, client)
				}
				var all sync.WaitGroup
				last := 0
				for i := range 8 {
					caller := &randomCaller{
						t: t, random: rand.New(rand.NewPCG(seed, uint64(i))), clients: clients, observe: seen,
						last: &last}
					all.Go(func() {
						for range 12 {
							caller.once()
						}
					})
				}
				<-time.After(20 * time.Second)
				must(t, clients[2].Close())
				all.Wait()
				for _, client := range clients {
					_ = client.Close() // what is left may be lost by now
				}
				synctest.Wait()
				seen.over()
			})
		})
	}
}

// A hold that is lost, and one that Close gives back, end once for the observer.
func TestEventsOfEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := newGrammar(t)
		client, err := holdfast.NewOn(newServer().Connect("p"), &holdfast.Config{Observer: seen})
		must(t, err)
		ctx := context.WithValue(t.Context(), callID{}, 1)
		lost, err := client.Mutex("lost", holdfast.WithoutRenewal()).Lock(ctx)
		must(t, err)
		_, err = client.Mutex("closed").Lock(ctx)
		must(t, err)
		<-lost.Done()
		synctest.Wait()
		if last := seen.state["call 1, lost"]; last != holdfast.EventLost {
			t.Errorf("%v", last)
		}
		must(t, client.Close())
		if last := seen.state["call 1, closed"]; last != holdfast.EventReleased {
			t.Errorf("%v", last)
		}
		if err := lost.Release(); !errors.Is(err, holdfast.ErrLost) {
			t.Error(err)
		}
	})
}
