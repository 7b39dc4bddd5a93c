package simulate

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// A Result is what came out of a run.
type Result struct {
	Seed       uint64
	Mode       Mode
	Ops        int
	Counts     map[string]int // of what happened, by its kind
	Violations []Violation
	history    []event
}

type world struct {
	*ledger
	plan    Plan
	hosts   []*host
	wires   []*wire   // all there were, to be cut at the end
	clients []*client // those of now, by number; guarded by mu
	lives   []int
	works   sync.WaitGroup
	own     *client // the operator's
}

// Run makes a run of a plan, in a bubble of its own.
func Run(t *testing.T, p Plan) (result Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{plan: p, clients: make([]*client, len(p.Latency)), lives: make([]int, len(p.Latency))}
		w.ledger = newLedger(&w.plan)
		for _, server := range p.Servers {
			host, err := newHost(server, w.checkRenewal)
			if err != nil {
				t.Fatal(err)
			}
			w.hosts = append(w.hosts, host)
		}
		if err := w.play(); err != nil {
			w.addViolation(judge.Failed, "%v", err)
		}
		result = Result{p.Seed, p.Mode, len(p.Ops), w.counts, w.found, w.events}
	})
	return result
}

// play goes through the plan, lets everything end, and looks at what is left.
func (w *world) play() error {
	var err error
	if w.own, err = newClient(w.connectAll(10*time.Microsecond), operator); err != nil {
		return err
	}
	for _, rdb := range w.own.rdbs {
		if err := rdb.Ping(context.Background()).Err(); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
	}
	if w.plan.Mode == Quorum {
		if err := w.awaitCounting(); err != nil {
			return err
		}
		w.zero = time.Now() // the run's time begins when new masters count
		for _, r := range w.classes {
			r.idle = w.zero
		}
	}
	for i := range w.clients {
		if err := w.start(i); err != nil {
			return err
		}
	}
	stop := w.watch()
	w.schedule()
	w.works.Wait()
	err = w.closeAll()
	stop()
	for _, wire := range w.wires {
		wire.Close()
	}
	for _, host := range w.hosts {
		host.Close()
	}
	sleep(time.Minute) // go-redis dials in the background for a while
	synctest.Wait()
	if left := bubbleGoroutines(); len(left) > 0 {
		w.addViolation(judge.Left, "%d goroutines:\n\n%s", len(left), strings.Join(left, "\n\n"))
	}
	return err
}

// start begins a client's next life.
func (w *world) start(i int) error {
	w.lives[i]++
	c, err := newClient(w.connectAll(w.plan.Latency[i]), fmt.Sprintf("c%d.%d", i, w.lives[i]))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients[i] = c
	return nil
}

func (w *world) connectAll(latency time.Duration) (wires []*wire) {
	for i, host := range w.hosts {
		wires = append(wires, newWire(latency+w.plan.Servers[i].Latency, host, w.plan.Mode == Quorum))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wires = append(w.wires, wires...)
	return wires
}

// schedule starts operations and faults at their times, and waits for the end.
func (w *world) schedule() {
	start := func(at time.Duration, work func()) {
		w.works.Go(func() { w.sleepUntil(at); work() })
	}
	for i := range w.plan.Ops {
		op := &w.plan.Ops[i]
		start(op.At, func() { w.runOp(op) })
	}
	for i := range w.plan.Faults {
		f := &w.plan.Faults[i]
		start(f.At, func() { w.strike(f) })
	}
	for i := range w.plan.Operators {
		o := &w.plan.Operators[i]
		start(o.At, func() { w.operate(o) })
	}
	w.scheduleCrew()
	w.sleepUntil(w.plan.Length)
}

func (w *world) sleepUntil(at time.Duration) { sleep(time.Until(w.zero.Add(at))) }

// client returns the client of now with a number.
func (w *world) client(i int) *client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clients[i]
}

// closeAll closes all clients and looks at what they left.
func (w *world) closeAll() error {
	for _, c := range w.clients {
		if err := c.close(); err != nil {
			w.addViolation(judge.Release, "close of %s: %v", c.name, err)
		}
	}
	sleep(recoveryTime)
	if w.plan.Mode == Quorum { // one that forgot, and was not asked since, does not know it
		if err := w.awaitCounting(); err != nil {
			return err
		}
	}
	for _, name := range w.plan.names() {
		if name == "rw" || name == "permits" || name == "lead" {
			continue
		}
		lease, err := w.own.Mutex(name).TryLock(context.Background())
		if err != nil {
			w.addViolation(judge.Left, "%s: %v", name, err)
			continue
		}
		if err := lease.Release(); err != nil {
			w.addViolation(judge.Left, "%s: %v", name, err)
		}
	}
	if err := w.own.close(); err != nil {
		w.addViolation(judge.Release, "close of %s: %v", operator, err)
	}
	for i, host := range w.hosts {
		host.withClock(func() {})
		for _, key := range host.Keys() {
			if !tokenKeys.MatchString(key) {
				w.addViolation(judge.Left, "key %s at server %d for %v", key, i, host.TTL(key))
			}
		}
	}
	return nil
}

// tokenKeys matches the keys of tokens, which stay, by design.
var tokenKeys = regexp.MustCompile(`:\{[0-9a-z]+\}:clock$|^holdfast:\{%quorum\}$`)

// bubbleGoroutines returns the goroutines of this bubble but the caller's.
func bubbleGoroutines() (left []string) {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for i, stack := range strings.Split(string(buf), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if i > 0 && strings.Contains(head, "synctest bubble") && !strings.Contains(stack, "testing/synctest.") {
			left = append(left, stack)
		}
	}
	return left
}

// History returns what happened, in the order of time.
func (r Result) History() string {
	var b strings.Builder
	for _, e := range r.history {
		fmt.Fprintf(&b, "%14v %-6s %4d %-10s %s\n", e.at, e.client, e.op, e.what, e.text)
	}
	return b.String()
}
