package simulate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// strike lets a fault happen, and ends it.
func (w *world) strike(f *Fault) {
	w.noteFault(f, "fault", 1)
	undo := w.startFault(f)
	if f.For > 0 && undo != nil {
		sleep(f.For)
		undo()
	}
	w.noteFault(f, "fault over", -1)
	if w.forgetsHolds(f) {
		sleep(overlapExcuse + time.Millisecond)
		w.checkOverlaps()
	}
}

// startFault starts a fault; nil: it needs no end.
func (w *world) startFault(f *Fault) (undo func()) {
	path := w.client(f.Client).wires[f.Server]
	switch f.Kind {
	case Silence, Slow, LoseRest, Duplicate, LoseMessages:
		return path.disturb(f)
	case Cut:
		path.Disconnect()
	case CutAll:
		w.cutAll(f.Server)
	case Kill:
		w.crash(f.Client, func(path *wire) { path.Kill() })
		return func() { w.revive(f.Client) }
	case Vanish:
		w.crash(f.Client, func(path *wire) { path.Vanish() })
		return func() { w.revive(f.Client) }
	default:
		return w.startServerFault(f)
	}
	return nil
}

// startServerFault returns startFault for the faults of a server.
func (w *world) startServerFault(f *Fault) (undo func()) {
	h := w.hosts[f.Server]
	switch f.Kind {
	case Restart:
		return w.restart(f.Server)
	case ForgetDown:
		undo := w.restart(f.Server)
		h.withClock(h.FlushAll)
		return undo
	case Flush:
		w.flushScripts(f.Server)
	case Refuse:
		h.withClock(func() { h.refuses = append(h.refuses, f.Text) })
		return func() { h.withClock(func() { h.refuses = h.refuses[1:] }) }
	case ForgetAll:
		h.withClock(h.FlushAll)
	case ForgetKey:
		h.withClock(func() { h.Del("holdfast:" + f.Name) })
	case Step:
		h.clock.Step(f.Delay)
	default:
		panic(fmt.Sprint("no such trouble: ", f.Kind))
	}
	return nil
}

// crash ends a client's process: its leases count no more, and what its goroutines do goes nowhere.
func (w *world) crash(i int, how func(*wire)) {
	w.mu.Lock()
	c := w.clients[i]
	c.dead = true
	delete(w.crew, c)
	for _, r := range w.classes {
		r.idle = time.Now()
		for wait := range r.waiting {
			if wait.client == c {
				delete(r.waiting, wait)
			}
		}
	}
	w.mu.Unlock()
	for _, path := range c.wires {
		how(path)
	}
	w.works.Go(func() { _ = c.close() }) // it cannot
}

// revive starts the process again, unless somebody else has.
func (w *world) revive(i int) {
	w.mu.Lock()
	dead := w.clients[i].dead
	w.mu.Unlock()
	if !dead {
		return
	}
	if err := w.start(i); err != nil {
		w.report(judge.Failed, "%v", err)
	}
}

func (w *world) cutAll(server int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		c.wires[server].Disconnect()
	}
}

// restart takes a server down; it comes back with its data, and without its scripts.
func (w *world) restart(server int) (up func()) {
	h := w.hosts[server]
	w.flushScripts(server)
	h.withClock(func() { h.down++ })
	w.cutAll(server)
	return func() { h.withClock(func() { h.down-- }) }
}

func (w *world) flushScripts(server int) {
	if err := w.own.rdbs[server].ScriptFlush(context.Background()).Err(); err != nil &&
		!strings.Contains(err.Error(), "refused") {
		w.report(judge.Failed, "script flush: %v", err)
	}
}
