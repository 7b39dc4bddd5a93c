package storetest

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func operators() []test {
	return []test{
		{"inspect every kind", inspectKinds, leaves},
		{"inspect a hold", inspectHold, 0},
		{"inspect a queue", inspectQueue, queue},
		{"inspect a kept place", inspectPlace, queue},
		{"inspect a min hold", inspectMinHold, leaves},
		{"inspect a hold that has expired", inspectExpired, 0},
		{"queue of more than a page", queuePages, queue},
	}
}

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

func (e *env) checkState(c *client, name string, want lockinfo.State) {
	e.Helper()
	if info := e.inspect(c, name); info.State() != want {
		e.Errorf("%q is %s, want %s: %+v", name, info.State(), want, info)
	}
}

// awaitInfo inspects a name until its answer is as wanted.
func (e *env) awaitInfo(c *client, name, want string, holds func(lockinfo.Info) bool) (info lockinfo.Info) {
	e.Helper()
	if !soon(func() bool { info = e.inspect(c, name); return holds(info) }) {
		e.Fatalf("got %+v, want %s", info, want)
	}
	return info
}

func (e *env) onlyHold(info lockinfo.Info) lockinfo.Hold {
	e.Helper()
	if len(info.Holds) != 1 || info.Holders != 1 {
		e.Fatalf("%d holds are told, of %d: %+v", len(info.Holds), info.Holders, info)
	}
	return info.Holds[0]
}

func inspectKinds(e *env) {
	a, b, c := e.client(label("A")), e.client(label("A")), e.client(label("C"))
	for _, use := range e.uses() {
		leases := []*holdfast.Lease{e.take(use.try(a, name))}
		if use.other != nil {
			leases = append(leases, e.take(use.other(b, name)))
		}
		info, permits := e.inspect(c, name), int64(0)
		checkEqual(e, "kind", string(info.Kind), use.kind)
		checkEqual(e, use.kind+": state", info.State(), lockinfo.StateHeld)
		checkEqual(e, use.kind+": holders", info.Holders, len(leases))
		checkEqual(e, use.kind+": holds that are told", len(info.Holds), len(leases))
		for _, hold := range info.Holds {
			permits += hold.Permits
			checkEqual(e, use.kind+": label", hold.Label, "A")
			checkEqual(e, use.kind+": state of a hold", hold.State, lockinfo.StateHeld)
			checkEqual(e, use.kind+": mode", hold.Mode, use.mode)
		}
		checkEqual(e, use.kind+": permits that are taken", info.Taken, permits)
		if use.kind == "semaphore" {
			checkEqual(e, "permits", info.Permits, 3)
			checkEqual(e, "permits that are taken", permits, 3)
		}
		w := e.startWaiting(e.ctx(), c, use.rival(c, name))
		if queue := e.inspect(a, name).Queue; !e.backend.NoQueue {
			e.checkQueue(queue, "C")
			if use.mode == lockinfo.ModeReads {
				checkEqual(e, "mode of who waits for readers", queue[0].Mode, lockinfo.ModeWrites)
			}
		}
		e.release(leases...)
		e.release(w.await())
	}
}

// checkQueue fails unless those of these labels stand in a queue, in this order.
func (e *env) checkQueue(queue []lockinfo.Waiter, want ...string) {
	e.Helper()
	var got []string
	for _, w := range queue {
		got = append(got, w.Label)
	}
	if !slices.Equal(got, want) {
		e.Fatalf("queue of %q, want %q: %+v", got, want, queue)
	}
}

func inspectHold(e *env) {
	a, b := e.client(label("A")), e.client()
	began := time.Now()
	lease := e.lock(a.Mutex(name, holdfast.WithTTL(20*time.Second), holdfast.WithOwner("o")))
	took := time.Since(began)
	info := e.inspect(b, name)
	hold := e.onlyHold(info)
	checkEqual(e, "label", hold.Label, "A")
	checkEqual(e, "owner", hold.Owner, "o")
	checkEqual(e, "mode", hold.Mode, lockinfo.ModeExclusive)
	checkEqual(e, "TTL", hold.TTL, 20*time.Second)
	checkEqual(e, "fixed", hold.Fixed, false)
	checkEqual(e, "permits", hold.Permits, 0)
	if hold.Token > lease.Token() || hold.LastToken < lease.Token() {
		e.Errorf("tokens %d to %d, the lease has %d", hold.Token, hold.LastToken, lease.Token())
	}
	e.checkTimes(info, hold, took)
	e.checkHere(hold.Host, hold.PID)
	e.release(lease)
	fixed := e.lock(a.Mutex(name, holdfast.WithoutRenewal()))
	hold = e.onlyHold(e.inspect(b, name))
	checkEqual(e, "fixed", hold.Fixed, true)
	checkEqual(e, "owner", hold.Owner, "")
	checkEqual(e, "late", hold.Late, false)
	e.release(fixed)
}

// checkTimes fails unless the times of a hold agree. The masters of a quorum grant it within took,
// each at a time of its own.
func (e *env) checkTimes(info lockinfo.Info, hold lockinfo.Hold, took time.Duration) {
	e.Helper()
	if hold.Remaining <= 0 || hold.Remaining > hold.TTL {
		e.Errorf("%v remain of %v", hold.Remaining, hold.TTL)
	}
	if hold.Renewed.After(info.At) {
		e.Errorf("renewed at %v, after it was inspected at %v", hold.Renewed, info.At)
	}
	// A quorum tells the time by the token, which a master whose clock is far ahead may have set.
	if hold.Since.IsZero() && len(info.Masters) > 0 && time.UnixMicro(hold.Token).After(info.At) {
		return
	}
	if hold.Since.IsZero() || hold.Since.After(info.At) {
		e.Errorf("held since %v, inspected at %v", hold.Since, info.At)
	}
	if first := hold.Since.Add(-took - slack); hold.Renewed.Before(first) {
		e.Errorf("renewed at %v, want %v at the earliest", hold.Renewed, first)
	}
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

func inspectQueue(e *env) {
	a := e.client()
	lease := e.lock(a.Mutex(name))
	var waiters []*waiter
	labels := []string{"1st", "2nd", "3rd"}
	for _, text := range labels {
		c := e.client(label(text))
		waiters = append(waiters, e.startWaiting(e.ctx(), c, c.Mutex(name, holdfast.WithOwner("o of "+text)).Lock))
	}
	info := e.inspect(a, name)
	e.checkQueue(info.Queue, labels...)
	checkEqual(e, "waiters", info.Waiters, 3)
	checkEqual(e, "waiters that a try is told of", e.busyError(a.Mutex(name)).Waiters, 3)
	for i, w := range info.Queue {
		checkEqual(e, "owner", w.Owner, "o of "+labels[i])
		checkEqual(e, "place", w.Place, i+1)
		checkEqual(e, "kept", w.Kept, false)
		if w.Alive == lockinfo.AliveNo {
			e.Errorf("place %d: its process is not alive: %+v", i+1, w)
		}
		if w.ID == "" || strings.ContainsAny(w.ID, "|:") { // what separates the values of an answer
			e.Errorf("place %d: id %q", i+1, w.ID)
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
	w := e.startWaiting(e.ctx(), c, c.Mutex(name).Lock)
	info := e.inspect(a, name)
	e.checkQueue(info.Queue, "B", "C")
	checkEqual(e, "waiters", info.Waiters, 1)
	kept, behind := info.Queue[0], info.Queue[1]
	checkEqual(e, "B: kept", kept.Kept, true)
	checkEqual(e, "B: place", kept.Place, 0)
	checkEqual(e, "B: alive", kept.Alive, lockinfo.AliveNo)
	checkEqual(e, "C: kept", behind.Kept, false)
	checkEqual(e, "C: place", behind.Place, 1)
	e.release(lease)
	e.release(w.await())
	infos := e.list(a, holdfast.ListOptions{}) // nobody holds, and a place is kept
	checkEqual(e, "names", len(infos), 1)
	checkEqual(e, "state", infos[name].State(), lockinfo.StateFree)
	e.checkQueue(infos[name].Queue, "B")
	e.release(e.attachPlace(b, ticket))
}

func inspectMinHold(e *env) {
	a, b := e.client(label("A")), e.client()
	e.release(e.lock(a.Mutex(name, holdfast.WithMinHold(time.Minute))))
	hold := e.onlyHold(e.awaitInfo(b, name, "a min hold", func(info lockinfo.Info) bool {
		return info.State() == lockinfo.StateMinHold
	}))
	holder := "A"
	if e.backend.isQuorum() { // its masters keep no more than the time
		holder = ""
	}
	checkEqual(e, "state of the hold", hold.State, lockinfo.StateMinHold)
	checkEqual(e, "label", hold.Label, holder)
	checkEqual(e, "broken by", hold.By, "")
	if hold.Remaining > time.Minute || hold.Remaining < 20*time.Second {
		e.Errorf("%v remain, want 20s to 1m", hold.Remaining)
	}
}

func inspectExpired(e *env) {
	a, b := e.client(), e.client()
	e.take(a.RWMutex(name, holdfast.WithTTL(100*time.Millisecond), holdfast.WithoutRenewal()).RLock)
	long := e.take(b.RWMutex(name).RLock) // the server keeps the name, and the other hold
	e.onlyHold(e.awaitInfo(b, name, "1 holder", func(info lockinfo.Info) bool { return info.Holders == 1 }))
	e.release(long)
	e.checkState(b, name, lockinfo.StateFree)
}

func queuePages(e *env) {
	a, b := e.client(), e.client()
	const many = 230
	lease := e.lock(a.Mutex(name))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var waiters []*waiter
	for range many {
		waiters = append(waiters, e.goTake(ctx, b.Mutex(name, holdfast.WithStrictOrder()).Lock))
	}
	info := e.awaitInfo(a, name, "all waiters", func(info lockinfo.Info) bool { return info.Waiters == many })
	checkEqual(e, "waiters of a page", len(info.Queue), 100)
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
