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
	if f.forgets() {
		pass(blind + time.Millisecond)
		w.look()
	}
}

// begin begins a fault; nil: it needs no end.
func (w *world) begin(f *Fault, c *client) (undo func()) {
	h, wire := w.host, c.wire
	both := func(on, off func()) func() { wire.change(on); return func() { wire.change(off) } }
	switch f.Kind {
	case Silence:
		change := func(by int) func() {
			return func() {
				wire.quiet[f.Way] += by
				if f.Both {
					wire.quiet[1-f.Way] += by
				}
			}
		}
		return both(change(1), change(-1))
	case Slow:
		return both(func() { wire.slow += f.Delay }, func() { wire.slow -= f.Delay })
	case Lose, Duplicate:
		r := &rule{way: f.Way, times: f.Times, late: f.Delay, twice: f.Kind == Duplicate}
		return both(func() { wire.rules = append(wire.rules, r) }, func() { r.times = 0 })
	case Deafen:
		return both(func() { wire.deaf++ }, func() { wire.deaf-- })
	case Cut:
		wire.change(wire.cut)
	case CutAll:
		w.cutAll()
	case Kill:
		w.crash(f.Client, func() { wire.dead = true; wire.cut() })
		return func() { w.revive(f.Client) }
	case Vanish:
		w.crash(f.Client, wire.vanish)
		return func() { w.revive(f.Client) }
	case Restart:
		return w.restart()
	case ForgetDown:
		undo := w.restart()
		h.change(h.FlushAll)
		return undo
	case Flush:
		w.flushScripts()
	case Refuse:
		h.change(func() { h.refuses = append(h.refuses, f.Text) })
		return func() { h.change(func() { h.refuses = h.refuses[1:] }) }
	case ForgetAll:
		h.change(h.FlushAll)
	case ForgetKey:
		h.change(func() { h.Del("holdfast:" + f.Name) })
	case Step:
		h.change(func() { h.step += f.Delay })
	}
	return nil
}

// crash ends a client's process: its leases count no more, and what its goroutines do goes nowhere.
func (w *world) crash(i int, how func()) {
	w.mu.Lock()
	c := w.clients[i]
	c.dead = true
	for _, r := range w.rooms {
		r.idle = time.Now()
		for wait := range r.waiting {
			if wait.client == c {
				delete(r.waiting, wait)
			}
		}
	}
	w.mu.Unlock()
	c.wire.change(how)
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

func (w *world) cutAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		c.wire.change(c.wire.cut)
	}
}

// restart takes the server down; it comes back with its data, and without its scripts.
func (w *world) restart() (up func()) {
	w.flushScripts()
	w.host.change(func() { w.host.down++ })
	w.cutAll()
	return func() { w.host.change(func() { w.host.down-- }) }
}

// flushScripts makes the server forget all scripts.
func (w *world) flushScripts() {
	if err := w.rdb.ScriptFlush(context.Background()).Err(); err != nil && !strings.Contains(err.Error(), "refused") {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.violation(RuleFailed, "script flush: %v", err)
	}
}
