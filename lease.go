package holdfast

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// A Lease is a lock that is held. It is trusted until the moment the last confirmed request was
// sent, plus the TTL, less a margin. It is renewed every third of the TTL. The lease is lost when
// trust ends, or when the server says that the hold is not there any more. Its context then ends,
// before any other contender can be let in, and nothing brings the lease back. All methods are safe
// for concurrent use. The methods of nil and of the zero Lease say that nothing is held.
type Lease struct {
	inner  held
	noCopy noCopy
}

// held is one lease of the engine, or the leases of a group.
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
	Detach() ([]engine.Detached, error)
	Downgrade(ctx context.Context) error
	Release() error
}

var (
	_ held = (*engine.Lease)(nil)
	_ held = (*engine.GroupLease)(nil)
)

// Context returns a context that ends with the lease. It carries the values of the context that the
// lock was taken with, but not its deadline or cancellation. The cause is a *LostError after a
// loss, context.Canceled after Release and Detach, and ErrClosed after Client.Close.
//
// A caller that locks the same name under this context enters the hold. Goroutines that share the
// context therefore do not exclude each other.
func (l *Lease) Context() context.Context {
	if l.empty() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(ErrNotHeld)
		return ctx
	}
	return l.inner.Context()
}

// Done returns a channel that is closed when the lease ends.
func (l *Lease) Done() <-chan struct{} { return l.Context().Done() }

// Err returns nil while the lease can be trusted. It compares the clocks itself, so it is right
// even before any goroutine has noticed the end. Afterwards Err returns the *LostError, or
// ErrClosed. After Release and Detach it returns ErrNotHeld.
func (l *Lease) Err() error {
	if l.empty() {
		return ErrNotHeld
	}
	return public("lease", l.inner.Name(), l.inner.Err())
}

// Name returns the name that is held. For a group it returns the first name in the order of bytes.
func (l *Lease) Name() string {
	if l.empty() {
		return ""
	}
	return l.inner.Name()
}

// Owner returns the id of WithOwner, or else an id of the hold's own. For a group it returns the
// owner of the hold of Name. Owner and token together name the hold to Mutex.Resume, as long as the
// lease is not released. Owner returns "" if it is first called after the lease was released and
// the hold went to another goroutine.
func (l *Lease) Owner() string {
	if l.empty() {
		return ""
	}
	return l.inner.Owner()
}

// Token returns the fencing token. It is larger than the token of every earlier holder of the name,
// and below 2^53. Entries into one hold share its token, and so do readers of one process that
// share a hold. A writer's token is larger than those of all readers and writers before it. For a
// group, Token returns the token of Name; Tokens returns all.
//
// A store that remembers the largest token it has seen, and refuses smaller ones, is safe from late
// holders. Holders of one Semaphore are not alone, and each has its own token. Such a store would
// refuse all of them except the last to come. Guard what they write with a Mutex and its token.
func (l *Lease) Token() int64 {
	if l.empty() {
		return 0
	}
	return l.inner.Token()
}

// Tokens returns the token of every name that the lease holds: one name, or those of a group.
func (l *Lease) Tokens() map[string]int64 {
	if l.empty() {
		return nil
	}
	return l.inner.Tokens()
}

// Until returns when trust ends if no renewal is confirmed before. Once trust has ended, it returns
// a moment that is not in the future. After a hand-over it is at first the end of the hand-over's
// claim, at most 500 ms ahead, until the first renewal. For a group it is that of the name that
// ends first.
func (l *Lease) Until() time.Time {
	if l.empty() {
		return time.Time{}
	}
	return l.inner.Until()
}

// Check asks the server whether the hold is there, in one round trip of at most a sixth of the TTL.
//
//   - nil: the hold was there when the server answered.
//   - A *LostError: the hold was not there, or the lease was lost before. The lease has ended.
//   - A *StoreError: there was no answer, or the server refused. Nothing is changed, and trust goes
//     on as Until says.
//   - ErrNotHeld after Release, and ErrClosed after Client.Close.
//   - An *ArgumentError if ctx is nil.
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

// Release gives the lease back. It returns nil when that is done. The hold is free when all its
// entries are released, and the same request lets the next waiter in. If the last entry that writes
// an RWMutex is released while readers of the same hold stay, Release downgrades the hold by the
// same rules.
//
// Release does not use ctx: it works although ctx is over. It lasts at most the smaller of the
// remaining trust and Config.ReleaseTimeout. A lease of a group gives back all of its names, and
// joins the errors of those that failed.
//
// The lease is over after every call. The errors are:
//
//   - ErrNotHeld: the lease was released or detached before. Nothing is sent.
//   - ErrClosed: Client.Close gave the lease back.
//   - A *LostError: the lease was lost before, or the server says now that the hold had gone.
//   - An error that matches ErrUncertain: no answer came in time. The hold is then removed in the
//     background, or expires within its TTL.
//   - A *StoreError: the server refused, for example because a permission was taken away. The hold
//     stays until its TTL is over.
func (l *Lease) Release(ctx context.Context) error {
	_ = ctx
	if l.empty() {
		return ErrNotHeld
	}
	return public("release", l.inner.Name(), l.inner.Release())
}

// Downgrade turns a lease that writes an RWMutex into a lease that reads it, without a gap. The
// token stays the same, and no other holder comes between. Readers that wait enter at once; readers
// of this process that come within 5 ms enter without a request. Downgrade takes one round trip,
// and is tried again until ctx or trust ends. Each entry into a hold is downgraded on its own, and
// other contenders get in with the last. Releasing the last entry that writes, while readers of the
// hold stay, does the same.
//
// The errors are:
//
//   - An *ArgumentError: the lease does not write an RWMutex, or ctx is nil.
//   - ErrNotHeld after Release, the *LostError of a lost lease, or ErrClosed.
//   - A *StoreError: the server refused. The lease writes as before.
//   - An error that matches ErrUncertain: no answer came before ctx ended. The lease reads from now
//     on. Whether other readers may enter is not known yet. The request is repeated in the
//     background. If no answer comes, the lease is lost when trust ends.
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
