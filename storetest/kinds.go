package storetest

func kinds() []test {
	return []test{{"of one name exclude each other", otherKinds, 0}, {"of a name that is free may change", kindsInTurn, 0}}
}

// A use is a way to hold a name.
type use struct {
	kind string
	try  func(*client) locks
}

func (e *env) uses() []use {
	all := []use{
		{"mutex", func(c *client) locks { return c.Mutex(name).TryLock }},
		{"rwmutex", func(c *client) locks { return c.RWMutex(name).TryLock }},
		{"rwmutex", func(c *client) locks { return c.RWMutex(name).TryRLock }},
		{"election", func(c *client) locks { return c.Election(name).TryCampaign }},
	}
	if !e.backend.NoSemaphores {
		all = append(all, use{"semaphore", func(c *client) locks { return acquire(c.Semaphore(name, 2), 1, true) }})
	}
	return all
}

// The kind is part of the state of a name. A call of another kind is refused, whether it tries or
// would wait, and nothing is touched.
func otherKinds(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for _, one := range e.uses() {
		lease, err := e.had(one.try(a))
		if err != nil {
			e.Fatalf("%s: %v", one.kind, err)
		}
		for _, other := range e.uses() {
			if other.kind == one.kind {
				continue
			}
			e.foreign(e.tried(other.try(b)))
		}
		if one.kind != "mutex" {
			_, err = b.Mutex(name).Lock(e.ctx())
			e.foreign(err)
		}
		if one.kind != "semaphore" && !e.backend.NoSemaphores {
			_, err = b.Semaphore(name, 7).Acquire(e.ctx(), 7)
			e.foreign(err)
			e.foreign(e.resize(b.Semaphore(name, 7), 3))
		}
		if one.kind != "rwmutex" {
			_, err = b.RWMutex(name).RLock(e.ctx())
			e.foreign(err)
		}
		if one.kind != "election" {
			e.foreign(e.leaderless(b.Election(name)))
		}
		if err := e.check(lease); err != nil {
			e.Errorf("Check of the %s: %v", one.kind, err)
		}
		e.release(lease)
		e.free(c.Mutex(name))
	}
}

func kindsInTurn(e *env) {
	a, b := e.client(), e.client()
	last := int64(0)
	for range 2 {
		for _, one := range e.uses() {
			for _, c := range []*client{a, b} {
				lease, err := e.had(one.try(c))
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
