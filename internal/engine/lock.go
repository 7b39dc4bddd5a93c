package engine

import (
	"context"
	"errors"
	"time"
	"unique"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Options say how a lock is held and waited for. The caller checks them. A field in which callers
// of one pool must agree is in poolKind, or keeps callers out of pools, in Engine.newSettings or in
// Lock.acquire.
type Options struct {
	TTL     time.Duration
	MinHold time.Duration // 0: none
	MaxHold time.Duration // 0: none
	Fixed   bool          // no renewal
	Strict  bool          // every caller stands in the server's queue itself
	Wanted  bool          // the holder is told as soon as others ask
	Retain  time.Duration // how long a hold stays with the process unused; 0: it does not

	NoRecall  bool          // a call that does not wait asks once, whatever the holder retains
	RetainTTL time.Duration // the TTL of a hold that may stay unused, if it is below TTL
	Interval  time.Duration // of polling; 0: it waits in the queue
	Attempts  int           // of polling; 0: no end
	Wait      time.Duration // how long one call waits at most; 0: as long as its context lasts

	// DeadlockCheck: the place of a caller that waits under leases names them, and the caller looks
	// for deadlocks. Only with a protocol that has a queue, and not with Interval.
	DeadlockCheck bool

	// Under has tokens, by name: the caller waits for a program that holds these names by leases of
	// other clients. Its place names those holds too. It counts only where there is a queue.
	Under *Tokens // nil: none
}

// Tokens are the tokens of leases, by name.
type Tokens map[string]int64

// A Lock is a name and how it is held. It has no state and is safe to share. Each hold keeps its
// lock, so a lock is small: what it needs for a request is made for that request.
type Lock struct {
	*settings
	name  string
	plain *Lock // the callers' lock, if this one is made of it for holds that may be retained; else nil
}

// Settings are how a name is held. Locks of many names share them. They never change.
type settings struct {
	engine   *Engine
	spec     protocol.Spec // without the name
	options  Options
	pool     unique.Handle[poolKind] // of its callers, but for the name
	weight   int64                   // of a semaphore: how many permits
	grantTTL time.Duration           // how long the server keeps a hold that is granted, unless it is prolonged
	timeout  time.Duration           // of one request
	pace     protocol.Pace           // of an attempt, before its first request
	pooled   bool                    // its callers wait in a pool
	joinable bool                    // its holds are joined by other goroutines, and not passed on to them
	beside   []*Lease                // of a part of a group: the parts that the group holds already
}

// A settingsKey is what settings are made of.
type settingsKey struct {
	spec    protocol.Spec
	options Options
}

// mostSettings is how many settings an engine remembers, before it forgets all.
const mostSettings = 100

// NewLock names what to lock, and how. It sends nothing.
func (e *Engine) NewLock(spec protocol.Spec, options Options) *Lock {
	name := spec.Name
	spec.Name = ""
	return &Lock{settings: e.settings(settingsKey{spec, options}), name: name}
}

// settings returns the settings of a key, which other locks may have as well.
func (e *Engine) settings(key settingsKey) *settings {
	e.knownSettings.Lock()
	defer e.knownSettings.Unlock()
	s := e.knownSettings.byKey[key]
	if s == nil {
		s = e.newSettings(key)
		if len(e.knownSettings.byKey) >= mostSettings {
			clear(e.knownSettings.byKey)
		}
		e.knownSettings.byKey[key] = s
	}
	return s
}

// newSettings makes the settings of a key.
func (e *Engine) newSettings(key settingsKey) *settings {
	spec, options := key.spec, key.options
	spec.TTL, spec.Fixed = options.TTL, options.Fixed
	spec.Claim = claim(options.TTL)
	l := &settings{
		engine: e, spec: spec, options: options,
		grantTTL: max(options.TTL, options.MinHold), timeout: timeout(options.TTL), pace: pace(options.TTL),
	}
	// A hold passes from goroutine to goroutine only where nothing but the goroutine changes. A
	// lease with times of its own asks the server itself, as does an owner, which may enter beside
	// a holder.
	l.pooled = !options.Strict && !options.Fixed && options.MinHold == 0 && options.MaxHold == 0 && spec.Owner == ""
	l.joinable = l.pooled && spec.Kind == protocol.ReadWrite && spec.Shared
	l.setPool()
	if !l.pooled || !e.features.Queue {
		l.options.Retain = 0
	}
	return l
}

// Spec is what the lock was made of.
func (l *Lock) Spec() protocol.Spec {
	spec := l.spec
	spec.Name = l.name
	return spec
}

// resource sends the requests about the name. It is made for each, so that holds do not keep it.
func (l *Lock) resource() protocol.Resource { return l.engine.protocol.Bind(l.Spec()) }

// with returns the lock with settings of its own, which change makes of those that it has.
func (l *Lock) with(change func(*settings)) *Lock {
	changed := *l.settings
	change(&changed)
	changed.setPool()
	return &Lock{&changed, l.name, l.plain}
}

// unsupported is why the protocol has no such locks; nil: it has.
func (l *Lock) unsupported() error {
	why := l.engine.features.NoPermits
	if why == "" || l.spec.Kind != protocol.Semaphore {
		return nil
	}
	return &protocol.Failure{Op: "ask", Name: l.name, Reason: protocol.Unsupported, Err: errors.New(why)}
}

// Weigh returns the lock of a semaphore for n permits.
func (l *Lock) Weigh(n int64) *Lock { return l.with(func(s *settings) { s.weight = n }) }

// Endless returns the lock without the limits on waiting of its options: only ctx ends a wait.
func (l *Lock) Endless() *Lock {
	return l.with(func(s *settings) { s.options.Attempts, s.options.Wait = 0, 0 })
}

// Acquire waits for the lock. The error is a *WaitFailure, the Closed error, a *BusyError (polling
// ran out), a *protocol.Foreign, a *protocol.Mismatch, a *protocol.Upgrade, ErrReader or a
// *protocol.Failure that waiting does not cure. The cause of a *WaitFailure is a *deadlock.Cycle if
// the caller is the victim of one. After an error nothing is held, and what was queued or won is
// taken back.
func (l *Lock) Acquire(ctx context.Context) (*Lease, error) {
	if err := l.engine.admitCall(l.unsupported()); err != nil {
		return nil, err
	}
	defer l.engine.busy.Done()
	if lease, err := l.enter(ctx); lease != nil || err != nil {
		return lease, err
	}
	c := l.newCall(ctx)
	c.slow.beginWait()
	return c.end(l.acquire(c))
}

// acquire waits for a lock that no lease of the caller holds, in the way of its options.
func (l *Lock) acquire(c *call) (*Lease, error) {
	ctx, cancel := boundedWait(c.ctx, l.options.Wait)
	defer cancel()
	var under []*Lease
	if l.options.DeadlockCheck {
		under = l.waitsUnder(ctx)
	}
	switch {
	case l.options.Interval > 0:
		return l.poll(ctx, c)
	case len(under) > 0 || l.options.Under != nil && l.engine.features.Queue:
		return l.acquireUnder(ctx, c, under)
	case l.pooled:
		return l.acquirePooled(ctx, c)
	}
	a := l.newAttempt(c, 1)
	return a.beginLease(a.run(ctx))
}

// Try asks once. The error is a *BusyError when others hold, otherwise as Acquire's. It is
// a *protocol.Failure also where waiting could cure that.
func (l *Lock) Try(ctx context.Context) (*Lease, error) {
	if err := l.engine.admitCall(l.unsupported()); err != nil {
		return nil, err
	}
	defer l.engine.busy.Done()
	if lease, err := l.enter(ctx); lease != nil || err != nil {
		return lease, err
	}
	c := l.newCall(ctx)
	lease, err := l.try(c)
	return c.end(lease, l.engine.orEnded(ctx, c.start, err))
}

// try asks once for a lock that no lease of the caller holds. The observer is not told.
func (l *Lock) try(c *call) (*Lease, error) {
	if lease, err := l.tryHere(c.ctx); lease != nil || err != nil {
		return lease, err
	}
	a := l.newAttempt(c, 1)
	return a.beginLease(a.try(c.ctx))
}
