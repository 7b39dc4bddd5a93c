package simulate

import (
	"context"
	"strings"
	"time"
)

// strike lets a fault happen, and ends it.
func (w *world) strike(f *Fault) {
	w.mu.Lock()
	c := w.clients[f.Client]
	w.mu.Unlock()
	w.trouble(f)
	undo := w.begin(f, c)
	if f.For > 0 && undo != nil {
		pass(f.For)
		undo()
	}
	w.calm(f)
	if w.forgets(f) {
		pass(blind + time.Millisecond)
		w.look()
	}
}

// begin begins a fault; nil: it needs no end.
func (w *world) begin(f *Fault, c *client) (undo func()) {
	h, path := w.hosts[f.Server], c.wires[f.Server]
	both := func(on, off func()) func() { path.change(on); return func() { path.change(off) } }
	switch f.Kind {
	case Silence:
		change := func(by int) func() {
			return func() {
				path.quiet[f.Way] += by
				if f.Both {
					path.quiet[1-f.Way] += by
				}
			}
		}
		return both(change(1), change(-1))
	case Slow:
		return both(func() { path.slow += f.Delay }, func() { path.slow -= f.Delay })
	case Lose, Duplicate:
		r := &rule{way: f.Way, times: f.Times, late: f.Delay, twice: f.Kind == Duplicate}
		return both(func() { path.rules = append(path.rules, r) }, func() { r.times = 0 })
	case Deafen:
		return both(func() { path.deaf++ }, func() { path.deaf-- })
	case Cut:
		path.change(path.cut)
	case CutAll:
		w.cutAll(f.Server)
	case Kill:
		w.crash(f.Client, func(path *wire) { path.dead = true; path.cut() })
		return func() { w.revive(f.Client) }
	case Vanish:
		w.crash(f.Client, (*wire).vanish)
		return func() { w.revive(f.Client) }
	case Restart:
		return w.restart(f.Server)
	case ForgetDown:
		undo := w.restart(f.Server)
		h.change(h.FlushAll)
		return undo
	case Flush:
		w.anew(f.Server)
		w.flushScripts(f.Server)
	case Refuse:
		h.change(func() { h.refuses = append(h.refuses, f.Text) })
		return func() { h.change(func() { h.refuses = h.refuses[1:] }) }
	case ForgetAll:
		h.change(h.FlushAll)
	case ForgetKey:
		h.change(func() { h.Del("holdfast:" + f.Name) })
	case Step:
		if f.Delay > 0 {
			w.forward(f.Server)
		} else {
			w.anew(f.Server)
		}
		h.set(f.Delay)
	}
	return nil
}

// crash ends a client's process: its leases count no more, and what its goroutines do goes nowhere.
func (w *world) crash(i int, how func(*wire)) {
	w.mu.Lock()
	c := w.clients[i]
	c.dead = true
	for _, r := range w.rooms {
		r.idle = time.Now()
		for wait := range r.waiting {
			if wait.client == c {
				delete(r.waiting, wait)
				r.died = append(r.died, time.Now())
			}
		}
	}
	w.mu.Unlock()
	c.change(how)
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
		w.mu.Lock()
		defer w.mu.Unlock()
		w.violation(RuleFailed, "%v", err)
	}
}

func (w *world) cutAll(server int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		c.wires[server].change(c.wires[server].cut)
	}
}

// restart takes a server down; it comes back with its data, and without its scripts.
func (w *world) restart(server int) (up func()) {
	h := w.hosts[server]
	w.flushScripts(server)
	w.anew(server)
	h.change(func() { h.down++ })
	w.cutAll(server)
	return func() { h.change(func() { h.down-- }) }
}

// flushScripts makes a server forget all scripts.
func (w *world) flushScripts(server int) {
	if err := w.own.rdbs[server].ScriptFlush(context.Background()).Err(); err != nil && !strings.Contains(err.Error(), "refused") {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.violation(RuleFailed, "script flush: %v", err)
	}
}
