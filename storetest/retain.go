package storetest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
)

// The names that are retained here last for so long that only a recall lets another process in.
const retainedFor = time.Minute

func retaining() []test {
	return []test{
		{"sends nothing, with growing tokens", retainSendsNothing, 0},
		{"another client gets in", retainRecalled, 0},
		{"a lease that is used stays, and goes to those that wait", retainUsed, 0},
		{"readers, and a writer", retainReaders, 0},
		{"is left by a ticket", retainDetached, 0},
	}
}

// retainer is a client that retains as long as it may.
func (e *env) retainer() *client {
	return e.client(func(c *holdfast.Config) { c.TTL, c.RetainTTL = retainedFor, retainedFor })
}

// retain uses a lock of a name, also after a recall, until so many clients retain it. It returns
// the last token.
func (e *env) retain(c *client, name string, lock lockFunc, clients int) (token int64) {
	eventually.Must(e, patience, "the name is retained", func() bool {
		lease := e.take(lock)
		token = lease.Token()
		e.release(lease)
		holds := e.inspect(c, name).Holds
		return len(holds) == clients && holds[clients-1].Retains
	})
	return token
}

func (e *env) checkLarger(lease *holdfast.Lease, before int64) int64 {
	e.Helper()
	if lease.Token() <= before {
		e.Errorf("token %d after %d", lease.Token(), before)
	}
	return lease.Token()
}

func retainSendsNothing(e *env) {
	a := e.retainer()
	m := a.Mutex(name, holdfast.WithRetain(retainedFor))
	token := e.retain(a, name, m.Lock, 1)
	hold := e.onlyHold(e.inspect(a, name))
	checkEqual(e, "retains", hold.Retains, true)
	for range 40 { // 100 tokens are ahead of a clock that stands still
		for _, lock := range []lockFunc{m.Lock, m.TryLock} {
			lease := e.take(lock)
			token = e.checkLarger(lease, token)
			e.release(lease)
		}
	}
	if now := e.onlyHold(e.inspect(a, name)); now.Token != hold.Token {
		e.Errorf("a request was sent: the hold has token %d, and had %d", now.Token, hold.Token)
	}
	if err := a.Close(); err != nil {
		e.Error(err)
	}
	e.checkLarger(e.lock(e.client().Mutex(name)), token)
}

func retainRecalled(e *env) {
	a, b := e.retainer(), e.client()
	m := a.Mutex(name, holdfast.WithRetain(retainedFor))
	for _, lock := range map[string]lockFunc{
		"Lock":    b.Mutex(name).Lock,
		"TryLock": func(ctx context.Context) (*holdfast.Lease, error) { return e.lockWhenFree(b.Mutex(name).TryLock) },
		"a group": func(ctx context.Context) (*holdfast.Lease, error) {
			return b.All([]string{name, name + " 2"}).Lock(ctx)
		},
	} {
		ours := e.retain(a, name, m.Lock, 1)
		theirs := e.take(lock)
		e.checkLarger(theirs, ours)
		e.release(theirs)
	}
}

func retainUsed(e *env) {
	a, b := e.retainer(), e.client()
	m := a.Mutex(name, holdfast.WithRetain(retainedFor))
	e.retain(a, name, m.Lock, 1)
	lease := e.lock(m)
	w := e.startWaiting(e.ctx(), b, b.Mutex(name).Lock)
	if held := e.busyError(b.Mutex(name)); !held.Retains {
		e.Errorf("refused by %+v, which does not say that the holder retains", held)
	}
	e.checkHolds(lease)
	e.release(lease)
	e.release(w.await())
}

func retainReaders(e *env) {
	a, b, c := e.retainer(), e.retainer(), e.client()
	for i, reader := range []*client{a, b} {
		e.retain(reader, name, reader.RWMutex(name, holdfast.WithRetain(retainedFor)).RLock, i+1)
	}
	e.release(e.take(c.RWMutex(name).RLock)) // it recalls no reader
	if holds := e.inspect(a, name).Holds; len(holds) != 2 {
		e.Errorf("%d clients retain, want 2", len(holds))
	}
	e.release(e.take(c.RWMutex(name).Lock))
}

func retainDetached(e *env) {
	a, b := e.retainer(), e.client()
	for what, lock := range map[string]lockFunc{
		"mutex":  a.Mutex("mutex", holdfast.WithRetain(retainedFor)).Lock,
		"reader": a.RWMutex("reader", holdfast.WithRetain(retainedFor)).RLock,
	} {
		e.retain(a, what, lock, 1)
		ticket, err := e.take(lock).Detach()
		if err != nil {
			e.Fatal(err)
		}
		lease, err := b.Attach(e.ctx(), ticket)
		if err != nil {
			e.Fatalf("%s: %v", what, err)
		}
		e.checkHolds(lease)
		e.release(lease)
	}
}

func retainRefused(e *env) {
	e.checkRefused(errorOf(e.client().Mutex(name, holdfast.WithRetain(time.Second)).TryLock(e.ctx())), "WithRetain")
}
