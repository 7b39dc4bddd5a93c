package storetest

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func operators() []test {
	return []test{
		{"inspect what nobody uses", inspectFree, 0},
		{"inspect every kind", inspectKinds, leaves},
		{"inspect a hold", inspectHold, 0},
		{"inspect a latch", inspectLatch, leaves},
		{"inspect a queue", inspectQueue, queue},
		{"inspect a kept place", inspectPlace, queue},
		{"inspect a min hold", inspectMinHold, leaves},
		{"inspect a hold that has expired", inspectExpired, 0},
		{"inspect changes nothing", inspectTouchesNothing, 0},
		{"queue of more than a page", queuePages, queue},
	}
}

// inspect asks until there is an answer.
func (e *env) inspect(c *client, name string) (info lockinfo.Info) {
	e.Helper()
	if err := e.askUntilAnswered(func() (err error) { info, err = c.Inspect(e.ctx(), name); return err }); err != nil {
		e.Fatalf("Inspect: %v", err)
	}
	if info.Name != name || info.At.IsZero() {
		e.Errorf("%q was inspected at %v as %q", name, info.At, info.Name)
	}
	return info
}

// checkState fails unless a name is in this state.
func (e *env) checkState(c *client, name string, want lockinfo.State) {
	e.Helper()
	if info := e.inspect(c, name); info.State() != want {
		e.Errorf("%q is %s, want %s: %+v", name, info.State(), want, info)
	}
}

// onlyHold returns the only hold of a name.
func (e *env) onlyHold(info lockinfo.Info) lockinfo.Hold {
	e.Helper()
	if len(info.Holds) != 1 || info.Holders != 1 {
		e.Fatalf("%d holds are told, of %d: %+v", len(info.Holds), info.Holders, info)
	}
	return info.Holds[0]
}

func inspectFree(e *env) {
	a, b := e.client(), e.client()
	for range 2 {
		// One master of a quorum may know the hold for a moment longer.
		eventually(func() bool { return !e.backend.NoSemaphores || e.inspect(b, name).Kind == "" })
		if info := e.inspect(b, name); info.State() != lockinfo.StateFree || info.Kind != "" ||
			info.Holders+info.Waiters+len(info.Holds)+len(info.Queue) != 0 {
			e.Errorf("got %+v", info)
		}
		e.checkFree(a.Mutex(name))
	}
}

func inspectKinds(e *env) {
	a, b, c := e.client(label("A")), e.client(label("A")), e.client(label("C"))
	for _, use := range e.uses() {
		leases := []*holdfast.Lease{e.take(use.try(a, name))}
		if use.other != nil {
			leases = append(leases, e.take(use.other(b, name)))
		}
		info, permits := e.inspect(c, name), int64(0)
		if string(info.Kind) != use.kind || info.State() != lockinfo.StateHeld || info.Holders != len(leases) ||
			len(info.Holds) != len(leases) {
			e.Errorf("a %s: got %+v", use.kind, info)
		}
		for _, hold := range info.Holds {
			permits += hold.Permits
			if hold.Label != "A" || hold.State != lockinfo.StateHeld || hold.Mode != use.mode {
				e.Errorf("a %s: got %+v", use.kind, hold)
			}
		}
		if use.kind == "semaphore" && (info.Permits != 3 || info.Taken != 3) || info.Taken != permits {
			e.Errorf("%d permits are taken: %+v", permits, info)
		}
		w := e.startWait(e.ctx(), c, use.rival(c, name))
		if queue := e.inspect(a, name).Queue; !e.backend.NoQueue && (len(queue) != 1 || queue[0].Label != "C" ||
			use.mode == lockinfo.ModeReads && queue[0].Mode != lockinfo.ModeWrites) {
			e.Errorf("queue: %+v", queue)
		}
		e.release(leases...)
		e.release(w.await())
	}
}

func inspectHold(e *env) {
	a, b := e.client(label("A")), e.client()
	began := time.Now()
	lease := e.lock(a.Mutex(name, holdfast.WithTTL(20*time.Second), holdfast.WithOwner("o")))
	took := time.Since(began) // the masters of a quorum grant within it, each at a time of its own
	info := e.inspect(b, name)
	hold := e.onlyHold(info)
	if hold.Label != "A" || hold.Owner != "o" || hold.Mode != lockinfo.ModeExclusive || hold.TTL != 20*time.Second ||
		hold.Fixed || hold.Permits != 0 {
		e.Errorf("got %+v", hold)
	}
	if hold.Token > lease.Token() || hold.LastToken < lease.Token() {
		e.Errorf("tokens %d to %d, the lease has %d", hold.Token, hold.LastToken, lease.Token())
	}
	if hold.Remaining <= 0 || hold.Remaining > 20*time.Second {
		e.Errorf("%v remain of %v", hold.Remaining, hold.TTL)
	}
	// A quorum tells the time by the token, which a master whose clock is far ahead may have set.
	unknown := hold.Since.IsZero() && len(info.Masters) > 0 && time.UnixMicro(hold.Token).After(info.At)
	if !unknown && (hold.Since.IsZero() || hold.Since.After(info.At) ||
		hold.Renewed.Before(hold.Since.Add(-took-slack))) || hold.Renewed.After(info.At) {
		e.Errorf("held since %v, renewed at %v, inspected at %v", hold.Since, hold.Renewed, info.At)
	}
	e.checkHere(hold.Host, hold.PID)
	e.release(lease)
	fixed := e.lock(a.Mutex(name, holdfast.WithoutRenewal()))
	if hold := e.onlyHold(e.inspect(b, name)); !hold.Fixed || hold.Owner != "" || hold.Late {
		e.Errorf("got %+v", hold)
	}
	e.release(fixed)
}

// checkHere fails unless a host and a process are those of this test, where they are told.
func (e *env) checkHere(host string, pid int) {
	e.Helper()
	if host == "" && pid == 0 {
		return
	}
	if want, err := os.Hostname(); err != nil || host != want || pid != os.Getpid() {
		e.Errorf("host %q and process %d, want %q and %d", host, pid, want, os.Getpid())
	}
}

func inspectLatch(e *env) {
	if e.backend.NoLatches {
		e.Skip("no latches at this server")
	}
	c := e.client()
	e.must(c.Latch(name).Set(e.ctx(), 2))
	for _, want := range []lockinfo.Info{{Kind: lockinfo.KindLatch, Count: 2}, {Kind: lockinfo.KindLatch, Count: 1},
		{Kind: lockinfo.KindLatch}} {
		if info := e.inspect(c, name); info.Kind != want.Kind || info.State() != want.State() ||
			info.Count != want.Count || info.Holders != 0 {
			e.Errorf("got %+v, want %+v", info, want)
		}
		e.must(c.Latch(name).CountDown(e.ctx()))
	}
}

func inspectQueue(e *env) {
	a := e.client()
	lease := e.lock(a.Mutex(name))
	var waiters []*waiter
	for _, text := range []string{"1st", "2nd", "3rd"} {
		c := e.client(label(text))
		waiters = append(waiters, e.startLock(e.ctx(), c, c.Mutex(name, holdfast.WithOwner("o of "+text))))
	}
	info := e.inspect(a, name)
	if held := e.busyError(a.Mutex(name)); len(info.Queue) != 3 || info.Waiters != 3 || held.Waiters != 3 {
		e.Fatalf("queue of %d, and of %d for a try: %+v", info.Waiters, held.Waiters, info.Queue)
	}
	for i, text := range []string{"1st", "2nd", "3rd"} {
		w := info.Queue[i]
		if w.Label != text || w.Owner != "o of "+text || w.Place != i+1 || w.Kept || w.Alive == lockinfo.AliveNo ||
			w.ID == "" || strings.ContainsAny(w.ID, "|:") {
			e.Errorf("place %d: %+v", i+1, w)
		}
		if w.Since.IsZero() || w.Since.After(info.At) {
			e.Errorf("waits since %v at %v", w.Since, info.At)
		}
		e.checkHere(w.Host, w.PID)
	}
	e.release(lease)
	e.releaseAll(waiters)
}

func inspectPlace(e *env) {
	a, b, c := e.client(), e.client(label("B")), e.client(label("C"))
	lease := e.lock(a.Mutex(name))
	ticket := e.ticket(b.Mutex(name))
	w := e.startLock(e.ctx(), c, c.Mutex(name))
	info := e.inspect(a, name)
	if len(info.Queue) != 2 || info.Waiters != 1 {
		e.Fatalf("queue of %d: %+v", info.Waiters, info.Queue)
	}
	kept, behind := info.Queue[0], info.Queue[1]
	if kept.Label != "B" || !kept.Kept || kept.Place != 0 || kept.Alive != lockinfo.AliveNo || behind.Label != "C" ||
		behind.Place != 1 || behind.Kept {
		e.Errorf("got %+v and %+v", kept, behind)
	}
	e.release(lease)
	e.release(w.await())
	infos := e.list(a, holdfast.ListOptions{}) // nobody holds, and a place is kept
	if info := infos[name]; len(infos) != 1 || info.State() != lockinfo.StateFree || len(info.Queue) != 1 ||
		info.Queue[0].Label != "B" {
		e.Errorf("got %+v", infos)
	}
	e.release(e.attachPlace(b, ticket))
}

func inspectMinHold(e *env) {
	a, b := e.client(label("A")), e.client()
	e.release(e.lock(a.Mutex(name, holdfast.WithMinHold(time.Minute))))
	eventually(func() bool { return e.inspect(b, name).State() == lockinfo.StateMinHold })
	info := e.inspect(b, name)
	known := "A"
	if e.backend.NoSemaphores { // the masters of a quorum keep no more than the time
		known = ""
	}
	if hold := e.onlyHold(info); info.State() != lockinfo.StateMinHold || hold.State != lockinfo.StateMinHold ||
		hold.Label != known || hold.By != "" ||
		hold.Remaining > time.Minute || hold.Remaining < 20*time.Second {
		e.Errorf("got %+v", info)
	}
}

func inspectExpired(e *env) {
	a, b := e.client(), e.client()
	e.take(a.RWMutex(name, holdfast.WithTTL(100*time.Millisecond), holdfast.WithoutRenewal()).RLock)
	long := e.take(b.RWMutex(name).RLock) // the server keeps the name, and the other hold
	eventually(func() bool { return e.inspect(b, name).Holders == 1 })
	e.onlyHold(e.inspect(b, name))
	e.release(long)
	if info := e.inspect(b, name); info.State() != lockinfo.StateFree {
		e.Errorf("got %+v", info)
	}
}

// A hold that is not renewed lasts no longer because it was inspected, and no shorter.
func inspectTouchesNothing(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(time.Minute)))
	end := func() (time.Time, time.Time) {
		info := e.inspect(b, name)
		return info.At, info.At.Add(e.onlyHold(info).Remaining)
	}
	began, first := end()
	for at := began; at.Sub(began) < time.Second; {
		<-time.After(50 * time.Millisecond)
		var last time.Time
		if at, last = end(); last.Sub(first).Abs() > 100*time.Millisecond { // the masters of a quorum end it apart
			e.Fatalf("it ended at %v, and now at %v", first, last)
		}
	}
	e.checkHolds(lease)
	e.release(lease)
}

func queuePages(e *env) {
	a, b := e.client(), e.client()
	const many = 230
	lease := e.lock(a.Mutex(name))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var waiters []*waiter
	for range many {
		waiters = append(waiters, e.begin(ctx, b.Mutex(name, holdfast.WithStrictOrder()).Lock))
	}
	eventually(func() bool { return e.inspect(a, name).Waiters == many })
	if info := e.inspect(a, name); info.Waiters != many || len(info.Queue) != 100 {
		e.Errorf("%d of %d waiters are told", len(info.Queue), info.Waiters)
	}
	seen := map[string]bool{}
	var last time.Time
	err := e.askUntilAnswered(func() error {
		clear(seen)
		last = time.Time{}
		for w, err := range a.Queue(e.ctx(), name) {
			if err != nil {
				return err
			}
			seen[w.ID] = true
			if w.Place != len(seen) || w.Since.Before(last) {
				e.Errorf("the waiter %d is at place %d, since %v after %v", len(seen), w.Place, w.Since, last)
			}
			last = w.Since
		}
		return nil
	})
	if err != nil || len(seen) != many {
		e.Errorf("%d waiters, %v", len(seen), err)
	}
	cancel()
	for _, w := range waiters {
		<-w.done
	}
	e.release(lease)
}
