package holdfast

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// A Lease is a lock that is held. It is trusted until the moment the last confirmed request was sent, plus the TTL,
// less a margin, and renewed every third of the TTL. When trust ends, or the server says that the hold is not there any
// more, the lease is lost: its context ends, before anybody else can be let in, and nothing brings it back.
// All methods are safe for concurrent use; those of nil and of the zero Lease say that nothing is held.
type Lease struct {
	inner  held
	noCopy noCopy
}

// held is one lease of the engine, or those of a group.
type held interface {
	Context() context.Context
	Carry(ctx context.Context) context.Context
	Err() error
	Name() string
	Owner() string
	Token() int64
	Tokens() map[string]int64
	Until() time.Time
	Check(ctx context.Context) error
	Downgrade(ctx context.Context) error
	Release() error
}

var (
	_ held = (*engine.Lease)(nil)
	_ held = (*engine.GroupLease)(nil)
)

// Context carries the values of the context that the lock was taken with, but not its deadline or cancellation. It ends
// with the lease: at a loss its cause is a *LostError, after Release context.Canceled, after Client.Close ErrClosed.
// Whoever locks the same name under it enters this hold; so goroutines that share it do not exclude each other.
func (l *Lease) Context() context.Context {
	if l.empty() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(ErrNotHeld)
		return ctx
	}
	return l.inner.Context()
}

// Done is closed when the lease ends.
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// Err is nil while the lease can be trusted: it compares the clocks itself, also where no goroutine has noticed yet. Then
// it is the *LostError, or ErrClosed; and ErrNotHeld after Release.
func (l *Lease) Err() error {
	if l.empty() {
		return ErrNotHeld
	}
	return public("lease", l.inner.Name(), l.inner.Err())
}

// Name is the name that is held; of a group, the first in the order of bytes.
func (l *Lease) Name() string {
	if l.empty() {
		return ""
	}
	return l.inner.Name()
}

// Owner is the id of WithOwner, or one that is the hold's own; of a group, of the hold of Name. With the token it names the
// hold to Mutex.Resume, as long as the lease is not released. It is empty when it is first asked for after the lease was released
// and passed on inside the process.
func (l *Lease) Owner() string {
	if l.empty() {
		return ""
	}
	return l.inner.Owner()
}

// Token is the fencing token: larger than that of every earlier holder of the name, and below 2^53. Entries into one
// hold share it, and so do readers of one process that share a hold; a writer's is larger than those of all readers and
// writers before it. Of a group it is that of Name; Tokens has the others. A store that remembers the largest token it has
// seen, and refuses smaller ones, is safe from holders that are late. Holders of one Semaphore, who are not alone, each have
// their own: such a store would refuse all of them but the one that came last, so what they write is better
// guarded by a Mutex, and its token.
func (l *Lease) Token() int64 {
	if l.empty() {
		return 0
	}
	return l.inner.Token()
}

// Tokens has the token of every name that the lease holds: one, or those of a group.
func (l *Lease) Tokens() map[string]int64 {
	if l.empty() {
		return nil
	}
	return l.inner.Tokens()
}

// Until is when trust ends if no renewal is confirmed before; a moment that is not in the future once it has ended. For a
// lock that was handed over it is at first the end of the hand-over's claim, at most 500 ms ahead, until the first renewal. Of
// a group it is that of the name that ends first.
func (l *Lease) Until() time.Time {
	if l.empty() {
		return time.Time{}
	}
	return l.inner.Until()
}

// Check asks the server whether the hold is there, in one round trip of at most a sixth of the TTL. Nil: it was, when the
// server answered. A *LostError: it was not, and the lease has ended. A *StoreError: there was no answer, which changes
// nothing; trust goes on as Until says.
func (l *Lease) Check(ctx context.Context) error {
	if l.empty() {
		return ErrNotHeld
	}
	if ctx == nil {
		var bad problems
		bad.check(false, "ctx", nil, "not nil")
		return bad.err("Lease.Check")
	}
	return public("check", l.inner.Name(), l.inner.Check(ctx))
}

// Release gives the lease back: nil says that it is. The hold is free when all its entries are released; the next in line
// is let in by the same request. It works although ctx is over, and takes no longer than the smaller of the
// remaining trust and Config.ReleaseTimeout; of ctx only the values count.
//
// Where it was the last entry that writes an RWMutex, and others of the hold read on, the hold is downgraded by the same rules.
//
// ErrNotHeld: it was released before; nothing is sent. ErrClosed: Client.Close gave it back. A *LostError: it was lost
// before, or the server says now that it had gone. An error that matches ErrUncertain: no answer came in time;
// the hold is then removed in the background, or expires within its TTL. A *StoreError: the server refused, as when a permission
// was taken away; the lease is over all the same, and the hold stays until its TTL is. A group gives back all of its names,
// and joins the errors of those that failed.
func (l *Lease) Release(ctx context.Context) error {
	_ = ctx
	if l.empty() {
		return ErrNotHeld
	}
	return public("release", l.inner.Name(), l.inner.Release())
}

// Downgrade makes a lease that writes an RWMutex one that reads it, without a gap: the same token, nobody between, and readers
// that wait enter at once, those of this process that come within 5 ms without a request. It takes one round trip, tried
// again until ctx or trust ends. Entries into one hold are downgraded each for itself; others get in with the last.
// Releasing the last entry that writes, while others of the hold read on, does the same.
//
// The error is an *ArgumentError for a lease that does not write an RWMutex; ErrNotHeld after Release; the *LostError of a lost
// lease; ErrClosed; a *StoreError when the server refused: the lease writes as before. An error that matches
// ErrUncertain: no answer came before ctx ended; from then on it is a lease that reads, and whether others may read too is not
// known yet: the request is repeated in the background, and if no answer comes the lease is lost when trust ends.
func (l *Lease) Downgrade(ctx context.Context) error {
	if l.empty() {
		return ErrNotHeld
	}
	var bad problems
	bad.check(ctx != nil, "ctx", nil, "not nil")
	if err := bad.err("Lease.Downgrade"); err != nil {
		return err
	}
	err := l.inner.Downgrade(ctx)
	if errors.Is(err, engine.ErrNotWriter) {
		bad.add("lease", "of "+shortened(l.inner.Name()), "one that writes an RWMutex")
		return bad.err("Lease.Downgrade")
	}
	return public("downgrade", l.inner.Name(), err)
}

func (l *Lease) empty() bool { return l == nil || l.inner == nil }
