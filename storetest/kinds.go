package storetest

import "github.com/holdfast-go/holdfast"

func kinds() []test {
	return []test{{"of one name exclude each other", otherKinds, 0},
		{"of a name that is free may change", kindsInTurn, 0}}
}

// A use is a way to hold a name.
type use struct {
	kind  string
	try   useFunc
	rival useFunc // waits until others have released
	other useFunc // gets in beside it at once; nil: nobody does
}

// A useFunc is a way to lock a name.
type useFunc func(c *client, name string, options ...holdfast.Option) locks

func (e *env) uses() []use {
	mutex := func(c *client, name string, o ...holdfast.Option) locks { return c.Mutex(name, o...).Lock }
	write := func(c *client, name string, o ...holdfast.Option) locks { return c.RWMutex(name, o...).Lock }
	read := func(c *client, name string, o ...holdfast.Option) locks { return c.RWMutex(name, o...).TryRLock }
	lead := func(c *client, name string, o ...holdfast.Option) locks { return c.Election(name, o...).Campaign }
	permits := func(n int64, try bool) useFunc {
		return func(c *client, name string, o ...holdfast.Option) locks {
			return acquire(c.Semaphore(name, 3, o...), n, try)
		}
	}
	all := []use{
		{"mutex", func(c *client, name string, o ...holdfast.Option) locks { return c.Mutex(name, o...).TryLock },
			mutex, nil},
		{"rwmutex", func(c *client, name string, o ...holdfast.Option) locks { return c.RWMutex(name, o...).TryLock },
			write, nil},
		{"rwmutex", read, write, read},
		{"election",
			func(c *client, name string, o ...holdfast.Option) locks { return c.Election(name, o...).TryCampaign },
			lead, nil},
	}
	if !e.backend.NoSemaphores {
		all = append(all, use{"semaphore", permits(2, true), permits(2, false), permits(1, true)})
	}
	return all
}

// The kind is part of the state of a name. A call of another kind is refused, whether it tries or
// would wait, and nothing is touched.
func otherKinds(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for _, one := range e.uses() {
		lease, err := e.lockWhenFree(one.try(a, name))
		if err != nil {
			e.Fatalf("%s: %v", one.kind, err)
		}
		for _, other := range e.uses() {
			if other.kind == one.kind {
				continue
			}
			e.checkForeign(e.lockError(other.try(b, name)))
		}
		if one.kind != "mutex" {
			e.checkForeign(errorOf(b.Mutex(name).Lock(e.ctx())))
			for _, lock := range []locks{b.All([]string{"a", name}).TryLock, b.All([]string{"a", name}).Lock} {
				e.checkForeign(e.lockError(lock))
			}
			e.checkFree(b.Mutex("a"))
		}
		if one.kind != "semaphore" && !e.backend.NoSemaphores {
			_, err = b.Semaphore(name, 7).Acquire(e.ctx(), 7)
			e.checkForeign(err)
			e.checkForeign(e.resize(b.Semaphore(name, 7), 3))
		}
		if one.kind != "rwmutex" {
			_, err = b.RWMutex(name).RLock(e.ctx())
			e.checkForeign(err)
		}
		if one.kind != "election" {
			for _, call := range e.electionCalls(b.Election(name)) {
				e.checkForeign(e.askUntilAnswered(func() error { return call(e.ctx()) }))
			}
		}
		// Of other kinds the state has another type, which an embedded server refuses in its words.
		if one.kind == "mutex" && !e.backend.NoLatches {
			for _, call := range e.latchCalls(b.Latch(name)) {
				e.checkForeign(e.askUntilAnswered(func() error { return call(e.ctx()) }))
			}
		}
		if err := e.check(lease); err != nil {
			e.Errorf("Check of the %s: %v", one.kind, err)
		}
		e.release(lease)
		e.checkFree(c.Mutex(name))
	}
}

func kindsInTurn(e *env) {
	a, b := e.client(), e.client()
	last := int64(0)
	for range 2 {
		for _, one := range e.uses() {
			for _, c := range []*client{a, b} {
				lease, err := e.lockWhenFree(one.try(c, name))
				if err != nil {
					e.Fatalf("%s: %v", one.kind, err)
				}
				if lease.Token() <= last && !e.backend.NoTokens {
					e.Errorf("%s: token %d after %d", one.kind, lease.Token(), last)
				}
				last = lease.Token()
				e.release(lease)
			}
		}
	}
}
