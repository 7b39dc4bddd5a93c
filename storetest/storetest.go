// Package storetest is the suite that every store, server and topology passes. Its tests check what
// the documents of package holdfast promise. It needs nothing but the standard library.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, storetest.Backend{Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
//			rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//			tb.Cleanup(func() { rdb.Close() })
//			client, err := holdfast.New(redisstore.New(rdb), config)
//			if err != nil {
//				tb.Fatal(err)
//			}
//			return client
//		}})
//	}
//
// Each case has a prefix of its own. Cases run one after the other, and a case that leaves
// goroutines behind fails. With Backend.Parallel several cases run at a time, and the suite fails
// if they leave goroutines behind. Cases wait for events, not for time to pass. If time must pass,
// it is a short TTL.
//
// Whether something came at once, and not when a client next asked, is judged where the clock is
// fake. In real time it is judged when HOLDFAST_PROOF=1 is set, on a machine that does nothing
// else.
package storetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// A Backend is what the suite runs on.
type Backend struct {
	// Open makes a client as another process would: on the same server, but sharing nothing else
	// with earlier clients. The suite closes the client. tb.Cleanup may close what is under it.
	Open func(tb testing.TB, config *holdfast.Config) *holdfast.Client

	// Left, if it is not nil, returns the keys under a prefix that are at the server, except the
	// clocks of tokens.
	Left func(tb testing.TB, prefix string) []string

	// Parallel is how many cases may run at a time; none beside another if it is 0. Most of the
	// time of a case is waiting. Parallel has no effect with Around.
	Parallel int

	// Around, if it is not nil, runs each case. An example is synctest.Test, if the server uses the
	// fake clock too.
	Around func(t *testing.T, run func(*testing.T))

	// NoQueue says that the server keeps no queue. Then no order between clients is promised.
	NoQueue bool

	// NoHistory says that nothing is kept of what happened.
	NoHistory bool

	// NoSemaphores and NoLatches say that the backend has none. All of their methods are then
	// refused, with the reason.
	NoSemaphores, NoLatches bool
}

// isQuorum reports whether the backend is a quorum of masters: it alone has no semaphores.
func (b *Backend) isQuorum() bool { return b.NoSemaphores }

// Run runs the suite as subtests of t.
func Run(t *testing.T, backend Backend) {
	permits, permitScenes, resizes, latches := semaphore(), permitMatrix(), resizing(), latch()
	if backend.NoSemaphores {
		permits, permitScenes, resizes = refused(semaphoreRefused), nil, nil
	}
	if backend.NoLatches {
		latches = refused(latchRefused)
	}
	broken, evicted := breaking(), evicting()
	if backend.isQuorum() { // without a moment that is the same everywhere, and without a queue
		broken, evicted = append(broken, test{"by force is refused", forceRefused, 0}), refused(evictRefused)
	}
	places, retained, wanted := place(), retaining(), wanting()
	if backend.NoQueue {
		places, retained, wanted = refused(placeRefused), refused(retainRefused), refused(wantedRefused)
	}
	sections := []section{
		{"arguments", []test{{"at their limits", limits, 0}}}, {"bind", bind()},
		{"break", broken}, {"close", closing()},
		{"deadlock", deadlocks()}, {"do", do()}, {"election", election()}, {"errors", failures()},
		{"evict", evicted}, {"extend", extend()}, {"group", group()}, {"history", histories()},
		{"kinds", []test{{"of one name exclude each other", otherKinds, 0}}}, {"latch", latches},
		{"lease", []test{{"a loss has a cause", leaseLost, 0}}},
		{"lease of a context", leaseFrom()}, {"list", lists()},
		{"max hold", maxHold()}, {"min hold", minHold()},
		{"mutex", []test{{"one at a time", oneAtATime, 0}}},
		{"names", []test{{"no two share a lock", distinctNames, 0}}}, {"operators", operators()},
		{"order", order()}, {"owner", owner()}, {"place", places},
		{"polling", []test{{"stands in no line", pollingInNoLine, 0}}}, {"reentry", reentry()},
		{"release", release()}, {"retain", retained}, {"rwmutex", rwmutex()},
		{"rwmutex downgrade", downgrade()},
		{"rwmutex matrix", readWriteMatrix()}, {"semaphore", permits},
		{"semaphore matrix", permitScenes}, {"semaphore resized", resizes}, {"tickets", tickets()},
		{"tokens", []test{{"grow through hand-overs", tokensHandedOn, queue}}}, {"trace", tracing()},
		{"waiting", waiting()}, {"wanted", wanted},
	}
	if backend.Parallel > 1 && backend.Around == nil {
		runBeside(t, backend, sections)
		return
	}
	for _, g := range sections {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.start(t, backend) })
			}
		})
	}
}

// runBeside runs up to backend.Parallel cases at a time, whatever -test.parallel says. The
// goroutines of one case cannot be told from those of another, so it looks for what is left when
// all are done.
func runBeside(t *testing.T, backend Backend, sections []section) {
	left, turns := leak.Watch(), make(chan struct{}, backend.Parallel)
	var all sync.WaitGroup
	for _, g := range sections {
		all.Go(func() {
			t.Run(g.name, func(t *testing.T) {
				var cases sync.WaitGroup
				for _, c := range g.cases {
					cases.Go(func() {
						turns <- struct{}{}
						defer func() { <-turns }()
						t.Run(c.name, func(t *testing.T) { c.begin(t, backend) })
					})
				}
				cases.Wait()
			})
		})
	}
	all.Wait()
	if left := left(); left != "" {
		t.Errorf("goroutines left behind:\n\n%s", left)
	}
}

type section struct {
	name  string
	cases []test
}

type test struct {
	name  string
	run   func(*env)
	needs needs
}

// needs says what a case needs to run, and what it may leave behind.
type needs int

const (
	queue  needs = 1 << iota // a queue at the server
	stream                   // a history
	leaves                   // it leaves keys until their time is over: what a min hold keeps, what a crash left
)

// start runs the case where the backend wants it, and fails when goroutines are left.
func (c test) start(t *testing.T, backend Backend) {
	alone := func(t *testing.T) {
		leak.Check(t)
		c.begin(t, backend)
	}
	if backend.Around == nil || c.missing(backend) != "" {
		alone(t)
		return
	}
	backend.Around(t, alone)
}

// missing is what the case needs and the backend does not have.
func (c test) missing(backend Backend) string {
	switch {
	case c.needs&queue != 0 && backend.NoQueue:
		return "no line at this server"
	case c.needs&stream != 0 && backend.NoHistory:
		return "no history at this server"
	}
	return ""
}

func (c test) begin(t *testing.T, backend Backend) {
	if what := c.missing(backend); what != "" {
		t.Skip(what)
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(t.Name()))
	e := &env{T: t, backend: backend, prefix: fmt.Sprintf("storetest-%x-%x", hash.Sum64(), time.Now().UnixNano())}
	if backend.Left != nil && c.needs&leaves == 0 {
		t.Cleanup(e.nothingLeft)
	}
	c.run(e)
}

// An env is what a case works with.
type env struct {
	*testing.T
	backend Backend
	prefix  string
	vague   atomic.Bool // a request had no answer: what it won is taken back in the background
	handed  sync.Map    // the leases that a wait ended with: a message may have handed them over
}

// A client is a client of the backend and what its observer saw.
type client struct {
	*holdfast.Client
	*events
}

// client opens a client, closed at the end of the case.
func (e *env) client(change ...func(*holdfast.Config)) *client {
	e.Helper()
	seen := newEvents(e.T)
	config := &holdfast.Config{Prefix: e.prefix, Observer: seen}
	for _, f := range change {
		f(config)
	}
	c := e.backend.Open(e.T, config)
	e.Cleanup(func() {
		if err := c.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
	})
	return &client{c, seen}
}

// judgesTimes reports whether the case judges how long something took, for what has no other sign.
// In real time it may take longer where much else is to do.
func (e *env) judgesTimes() bool {
	return e.backend.Around != nil || os.Getenv("HOLDFAST_PROOF") == "1" && !testing.Short()
}

// label is a change of a client's configuration.
func label(text string) func(*holdfast.Config) { return func(c *holdfast.Config) { c.Label = text } }

// nothingLeft waits until the server has forgotten all names. Places and holds that were given up
// are taken back in the background.
func (e *env) nothingLeft() {
	var left []string
	if !eventually.Holds(2*patience, func() bool { left = e.backend.Left(e.T, e.prefix); return len(left) == 0 }) {
		slices.Sort(left)
		e.Errorf("left at the server: %q", left)
	}
}

// claim is how long a hand-over waits to be taken up.
const claim = 500 * time.Millisecond

// patience is how long a case waits for an event that must happen. It is long, because machines are
// slow. It is shorter than the life of a place in the queue, so that no waiter gets in only because
// another was forgotten.
const patience = 15 * time.Second

// ctx returns a context that bounds what a case does. Its end is a failure.
func (e *env) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	e.Cleanup(cancel)
	return ctx
}

func soon(holds func() bool) bool { return eventually.Holds(patience, holds) }
