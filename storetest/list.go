package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func lists() []test {
	return []test{
		{"of every kind, as Inspect tells it", listKinds, leaves},
		{"by what a holder is", listHolders, 0},
		{"of more names than are inspected at a time, and its end", listMany, 0},
		{"beside names that come and go", listVanishing, 0},
		{"of another prefix", listPrefixes, 0},
	}
}

// list is what List tells, by name, where a name may come twice.
func (e *env) list(c *client, options holdfast.ListOptions) (infos map[string]lockinfo.Info) {
	e.Helper()
	err := e.askUntilAnswered(func() error {
		infos = map[string]lockinfo.Info{}
		for info, err := range c.List(e.ctx(), options) {
			if err != nil {
				return err
			}
			infos[info.Name] = info
		}
		return nil
	})
	if err != nil {
		e.Fatalf("List: %v", err)
	}
	return infos
}

// checkList fails unless List tells these names.
func (e *env) checkList(c *client, options holdfast.ListOptions, want ...string) {
	e.Helper()
	got := slices.Sorted(maps.Keys(e.list(c, options)))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		e.Errorf("%+v: got %.20q, want %.20q", options, got, want)
	}
}

func listKinds(e *env) {
	a, b := e.client(label("A")), e.client()
	kinds := map[lockinfo.Kind]string{"mutex": "m", "rwmutex": "r", "election": "e"}
	leases := []*holdfast.Lease{e.lock(a.Mutex("m")), e.take(a.RWMutex("r").RLock), e.take(a.Election("e").Campaign)}
	if !e.backend.NoSemaphores {
		kinds["semaphore"] = "s"
		leases = append(leases, e.take(acquire(a.Semaphore("s", 3), 2, true)))
	}
	if !e.backend.NoLatches {
		kinds["latch"] = "l"
		e.must(a.Latch("l").Set(e.ctx(), 1))
	}
	infos := e.list(b, holdfast.ListOptions{})
	for kind, name := range kinds {
		if info := infos[name]; info.Kind != kind || info.Name != name || kind != "latch" &&
			e.onlyHold(info).Label != "A" {
			e.Errorf("%s: got %+v", kind, info)
		}
	}
	if latch := infos["l"]; !e.backend.NoLatches && (latch.State() != lockinfo.StateSet || latch.Count != 1) {
		e.Errorf("got %+v", latch)
	}
	if len(infos) != len(kinds) {
		e.Errorf("%d names, want %d", len(infos), len(kinds))
	}
	e.release(leases...)
}

func listHolders(e *env) {
	a, b := e.client(label("A")), e.client(label("B"))
	leases := []*holdfast.Lease{e.lock(a.Mutex("of a")), e.lock(b.Mutex("of b")), e.take(a.RWMutex("of both").RLock),
		e.take(b.RWMutex("of both").RLock)}
	all := []string{"of a", "of b", "of both"}
	e.checkList(a, holdfast.ListOptions{Label: "A"}, "of a", "of both")
	e.checkList(a, holdfast.ListOptions{Label: "C"})
	e.checkList(a, holdfast.ListOptions{Label: "A", Pattern: "*a"}, "of a")
	e.checkList(a, holdfast.ListOptions{Process: "no such host"})
	e.checkList(a, holdfast.ListOptions{OlderThan: time.Hour})
	e.checkList(a, holdfast.ListOptions{OlderThan: time.Hour, Label: "A"})
	if info := e.inspect(a, "of a"); info.Holds[0].Host != "" {
		e.checkList(a, holdfast.ListOptions{Process: info.Holds[0].Host}, all...)
		e.checkList(a, holdfast.ListOptions{Process: info.Holds[0].Host + "/1", Label: "A"})
	}
	if info := e.inspect(a, "of a"); !info.Holds[0].Since.IsZero() {
		older := holdfast.ListOptions{OlderThan: time.Millisecond}
		soon(func() bool { return len(e.list(a, older)) == len(all) }) // else checkList fails
		e.checkList(a, older, all...)
	}
	e.release(leases...)
}

func listMany(e *env) {
	a, b := e.client(), e.client()
	var names []string
	var leases []*holdfast.Lease
	for i := range 300 {
		names = append(names, fmt.Sprint("name ", i))
		leases = append(leases, e.lock(a.Mutex(names[i])))
	}
	e.checkList(b, holdfast.ListOptions{}, names...)
	for range 3 { // the caller leaves it
		for _, err := range b.List(e.ctx(), holdfast.ListOptions{}) {
			e.must(err)
			break
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	last := func(stop func()) (last error) {
		for _, err := range b.List(ctx, holdfast.ListOptions{}) {
			stop()
			last = err
		}
		return last
	}
	e.checkIs(last(cancel), context.Canceled)
	ctx = e.ctx()
	e.checkIs(last(func() { e.close(b) }), holdfast.ErrClosed)
	e.release(leases...)
}

// A name that vanishes between the list and the look at it is left out, and no error.
func listVanishing(e *env) {
	a, b := e.client(), e.client()
	ctx, cancel := context.WithCancel(context.Background())
	churned := e.goCall(func() error {
		for ctx.Err() == nil {
			for _, name := range []string{"a", "b", "c", "d"} {
				e.checkFree(a.Mutex(name))
			}
		}
		return nil
	})
	for range 50 {
		for name, info := range e.list(b, holdfast.ListOptions{}) {
			if info.State() != lockinfo.StateHeld {
				e.Errorf("%q: %+v", name, info)
			}
		}
	}
	cancel()
	<-churned.done
}

// The prefix is no pattern, and a longer one is another's.
func listPrefixes(e *env) {
	odd := func(c *holdfast.Config) { c.Prefix += "-[*]?\\" }
	longer := func(c *holdfast.Config) { c.Prefix += "-longer" }
	a, b, c := e.client(), e.client(odd), e.client(longer)
	var leases []*holdfast.Lease
	for label, c := range map[string]*client{"A": a, "B": b, "C": c} { // one name, at one time
		leases = append(leases, e.tryLock(c.Mutex(name, holdfast.WithLabel(label))))
	}
	for label, c := range map[string]*client{"A": a, "B": b, "C": c} {
		e.checkList(c, holdfast.ListOptions{}, name)
		if held := e.busyError(c.Mutex(name)); held.Holder != label {
			e.Errorf("held by %q, want %q", held.Holder, label)
		}
	}
	e.release(leases...)
}
