package permissions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/store"
)

// visitor is the user whose permissions are tried, and an operator who may all.
type visitor struct {
	t              *testing.T
	realm          Realm
	prefix         string
	operator, user *holdfast.Client
}

// An operation is a call of a client, on a name of its own. Its error is the one that the user
// gets. Look is the operator's look at the name afterwards.
type operation struct {
	run, look func(name string) error
}

// operations returns the calls of a client, by name.
func (v *visitor) operations() map[string]operation {
	mutex := func(n string) error { return releaseGot(v.operator.Mutex(n).TryLock(v.ctx())) }
	rwmutex := func(n string) error { return releaseGot(v.operator.RWMutex(n).TryRLock(v.ctx())) }
	semaphore := func(n string) error { return releaseGot(v.operator.Semaphore(n, 3).TryAcquire(v.ctx(), 1)) }
	election := func(n string) error { _, err := v.operator.Election(n).Leader(v.ctx()); return err }
	latch := func(n string) error { _, err := v.operator.Latch(n).Count(v.ctx()); return err }
	return map[string]operation{
		"lock": {func(n string) error { return v.checkAndRelease(v.user.Mutex(n).Lock(v.ctx())) }, mutex},
		"try": {v.beside(func(n string, _ *holdfast.Lease) error {
			if _, err := v.user.Mutex(n).TryLock(v.ctx()); !errors.Is(err, holdfast.ErrHeld) {
				return err
			}
			return nil
		}), mutex},
		"wait":    {func(n string) error { return v.wait(n, v.operator, v.user) }, mutex},
		"hand on": {func(n string) error { return v.wait(n, v.user, v.operator) }, mutex},
		"owner": {func(n string) error {
			defer v.release(v.mustLease(v.operator.Mutex(n, holdfast.WithOwner("o"),
				holdfast.WithTTL(time.Minute)).Lock(v.ctx())))
			return v.checkAndRelease(v.user.Mutex(n, holdfast.WithOwner("o")).Lock(v.ctx()))
		}, mutex},
		"min hold": {func(n string) error { // longer than the machine may stand still before the release
			return v.checkAndRelease(v.user.Mutex(n, holdfast.WithMinHold(patience)).Lock(v.ctx()))
		}, mutex},
		"attach": {func(n string) error {
			ticket, err := v.mustLease(v.operator.Mutex(n, holdfast.WithMaxHold(time.Minute)).Lock(v.ctx())).Detach()
			if err != nil {
				return err
			}
			return v.checkAndRelease(v.user.Attach(v.ctx(), ticket))
		}, mutex},
		"place": {func(n string) error { // joins behind the operator, who then releases
			lease := v.mustLease(v.operator.Mutex(n, short).Lock(v.ctx()))
			ticket, err := v.user.Mutex(n, short).Ticket(v.ctx(), 0)
			v.release(lease)
			if err != nil {
				return err
			}
			return v.checkAndRelease(v.user.Attach(v.ctx(), ticket))
		}, mutex},
		"extend": {func(n string) error {
			lease, err := v.user.Mutex(n, holdfast.WithoutRenewal()).Lock(v.ctx())
			if err != nil {
				return err
			}
			return errors.Join(lease.Extend(v.ctx()), lease.Release())
		}, mutex},
		"group": {func(n string) error {
			return v.checkAndRelease(v.user.All([]string{n, n + "2"}).Lock(v.ctx()))
		}, mutex},
		"ready": {func(string) error { return v.user.Ready(v.ctx()) }, mutex},
		"read":  {func(n string) error { return v.checkAndRelease(v.user.RWMutex(n).RLock(v.ctx())) }, rwmutex},
		"permits": {func(n string) error {
			return v.checkAndRelease(v.user.Semaphore(n, 3).Acquire(v.ctx(), 2))
		}, semaphore},
		"resize": {func(n string) error {
			defer v.release(v.mustLease(v.operator.Semaphore(n, 3).Acquire(v.ctx(), 2)))
			return v.user.Semaphore(n, 3).Resize(v.ctx(), 4)
		}, semaphore},
		"downgrade": {func(n string) error {
			lease, err := v.user.RWMutex(n).Lock(v.ctx())
			if err != nil {
				return err
			}
			return errors.Join(lease.Downgrade(v.ctx()), lease.Release())
		}, rwmutex},
		"latch": {func(n string) error {
			l := v.user.Latch(n)
			if err := l.Set(v.ctx(), 1); err != nil {
				return err
			}
			return l.CountDown(v.ctx())
		}, latch},
		"inspect": {func(n string) error {
			defer v.holdTwo(n)()
			_, err := v.user.Inspect(v.ctx(), n)
			return errors.Join(err, errorOf(v.user.Inspect(v.ctx(), n+"2")))
		}, rwmutex},
		"list": {func(n string) error {
			defer v.holdTwo(n)()
			for _, err := range v.user.List(v.ctx(), holdfast.ListOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		}, rwmutex},
		"break": {v.beside(func(n string, lease *holdfast.Lease) error {
			return v.user.Break(v.ctx(), n, lease.Token())
		}), mutex},
		"force break": {v.beside(func(n string, lease *holdfast.Lease) error {
			return v.user.ForceBreak(v.ctx(), n, lease.Token())
		}), mutex},
		"ask": {v.beside(func(n string, _ *holdfast.Lease) error { return errorOf(v.user.Ask(v.ctx(), n)) }), mutex},
		"evict": {v.beside(func(n string, _ *holdfast.Lease) error {
			if _, err := v.operator.Mutex(n).Ticket(v.ctx(), time.Second); err != nil {
				return err
			}
			info, err := v.operator.Inspect(v.ctx(), n)
			if err != nil || len(info.Queue) != 1 {
				v.t.Fatalf("the queue is %+v, %v", info.Queue, err)
			}
			return v.user.Evict(v.ctx(), n, info.Queue[0].ID)
		}), mutex},
		"latch wait": {v.awaitLatch, latch},
		"lead": {func(n string) error {
			return v.checkAndRelease(v.user.Election(n).Campaign(v.ctx()))
		}, election},
		"leader": {func(n string) error {
			defer v.release(v.mustLease(v.operator.Election(n).Campaign(v.ctx())))
			_, err := v.user.Election(n).Leader(v.ctx())
			return err
		}, election},
	}
}

// short is the TTL where the other may have to wait for its end.
var short = holdfast.WithTTL(3 * time.Second)

// beside returns a call of the user beside a hold of the operator.
func (v *visitor) beside(call func(name string, lease *holdfast.Lease) error) func(name string) error {
	return func(name string) error {
		lease := v.mustLease(v.operator.Mutex(name).Lock(v.ctx()))
		defer v.release(lease)
		return call(name, lease)
	}
}

// holdTwo has the operator read one name, with a place in the queue behind it, and hold another
// alone. It returns how to end that.
func (v *visitor) holdTwo(name string) (end func()) {
	read, write := v.mustLease(v.operator.RWMutex(name).RLock(v.ctx())),
		v.mustLease(v.operator.Mutex(name+"2").Lock(v.ctx()))
	if _, err := v.operator.RWMutex(name).Ticket(v.ctx(), time.Second); err != nil {
		v.t.Fatal(err)
	}
	return func() {
		v.release(read)
		v.release(write)
	}
}

// errorOf returns the error of what a call returned.
func errorOf[T any](_ T, err error) error { return err }

func (v *visitor) awaitLatch(name string) error {
	if err := v.operator.Latch(name).Set(v.ctx(), 1); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- v.user.Latch(name).Wait(ctx) }()
	watchers := v.prefix + ":{" + name + "}:watchers"
	// nobody watches who may not subscribe
	for late := time.After(5 * time.Second); v.realm.number("HLEN", watchers) == 0; {
		select {
		case err := <-done:
			return err
		case <-late:
		case <-time.After(5 * time.Millisecond):
			continue
		}
		break
	}
	if err := v.operator.Latch(name).CountDown(v.ctx()); err != nil {
		cancel()
		<-done
		return err
	}
	return <-done
}

// wait lets one wait for the other.
func (v *visitor) wait(name string, first, second *holdfast.Client) error {
	lease, err := first.Mutex(name, short).Lock(v.ctx())
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	ctx := v.ctx()
	go func() { done <- v.checkAndRelease(second.Mutex(name, short).Lock(ctx)) }()
	queue := v.prefix + ":{" + name + "}:queue"
	var early error
	over := false
	if !eventually.Holds(patience, func() bool {
		select {
		case early = <-done:
			over = true
			return true
		default:
			// A waiter asks once more, in another way. Before that, the release takes a shorter
			// way, with ZCOUNT.
			return v.realm.number("ZCOUNT", queue, "1", "+inf") == 1 &&
				v.realm.number("ZCOUNT", queue, "-inf", "(0") == 1
		}
	}) {
		return fmt.Errorf("%s is not waited for", name)
	}
	err = lease.Release()
	if !over {
		early = <-done
	}
	return errors.Join(err, early)
}

// ctx returns a context that bounds what must happen.
func (v *visitor) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	v.t.Cleanup(cancel)
	return ctx
}

// mustLease returns a lease that the operator got.
func (v *visitor) mustLease(lease *holdfast.Lease, err error) *holdfast.Lease {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	return lease
}

func (v *visitor) release(lease *holdfast.Lease) {
	if err := lease.Release(); err != nil && !errors.Is(err, holdfast.ErrLost) {
		v.t.Errorf("the operator's release: %v", err)
	}
}

// checkAndRelease looks after a lease of the user, and gives it back.
func (v *visitor) checkAndRelease(lease *holdfast.Lease, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(lease.Check(context.Background()), lease.Release())
}

// releaseGot gives back what the operator may have got.
func releaseGot(lease *holdfast.Lease, err error) error {
	if err != nil {
		return err
	}
	return lease.Release()
}

// patience bounds what must happen, on a machine that has much else to do.
const patience = 15 * time.Second

// A watcher looks at the servers before and after each request of the user whose permissions are
// tried. No other user's request is carried out meanwhile.
type watcher struct {
	t       *testing.T
	realm   Realm
	prefix  string
	one     sync.Mutex
	touched atomic.Bool // by a request that was refused
}

// open makes a client: of the operator, or of the user whom it watches.
func (w *watcher) open(user string, watched bool) (*holdfast.Client, error) {
	password := ""
	if user != "" {
		password = "pw"
	}
	store, err := w.realm.Store(w.t, user, password)
	if err != nil {
		return nil, err
	}
	// The time for one request is a sixth of the TTL, and for a release its time-out. The watcher's
	// looks are part of it.
	config := &holdfast.Config{Prefix: w.prefix, TTL: 6 * time.Second, ReleaseTimeout: 2 * time.Second}
	c, err := holdfast.New(&watchedStore{store, w, watched}, config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c, nil
}

type watchedStore struct {
	store.Store
	watcher *watcher
	watched bool
}

// Do implements store.Store.
func (s *watchedStore) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	w := s.watcher
	w.one.Lock()
	defer w.one.Unlock()
	if !s.watched {
		return s.Store.Do(ctx, node, commands)
	}
	for _, do := range w.realm.Servers {
		_, _ = do("SCRIPT", "FLUSH") // else it depends on time which scripts the operator has loaded already
	}
	if len(commands) != 1 {
		return s.Store.Do(ctx, node, commands)
	}
	began := time.Now()
	before := w.snapshot()
	replies := s.Store.Do(ctx, node, commands)
	if replies[0].Refused != "" {
		after := w.snapshot()
		took := time.Since(began).Milliseconds() + 2
		// it ran out
		maps.DeleteFunc(before, func(key string, e entry) bool {
			return after[key] == (entry{}) && e.left >= 0 && e.left <= took
		})
		same := func(a, b entry) bool { return a.dump == b.dump && b.left <= a.left && b.left >= a.left-took }
		if !maps.EqualFunc(before, after, same) {
			w.touched.Store(true)
		}
	}
	return replies
}

// An entry is what a key holds, and for how many ms; -1: for ever.
type entry struct {
	dump string
	left int64
}

func (w *watcher) snapshot() map[string]entry {
	seen := map[string]entry{}
	for _, do := range w.realm.Servers {
		keys, _ := do("KEYS", w.prefix+"*")
		list, _ := keys.([]any)
		for _, key := range list {
			left, _ := do("PTTL", key)
			dump, _ := do("DUMP", key)
			e := entry{}
			e.dump, _ = dump.(string)
			e.left, _ = left.(int64)
			if e.dump != "" {
				seen[key.(string)] = e
			}
		}
	}
	return seen
}
