package holdfast

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// A Lease is a lock that is held. It is trusted until the moment the last confirmed request was
// sent, plus the TTL, less a margin of TTL/100 + 5 ms. It is renewed every third of the TTL. It is
// lost when trust ends, or when the server says that the hold is not there any more. Its contexts
// then end, before any other contender can be let in, and nothing brings it back. All methods are
// safe for concurrent use. The methods of nil and of the zero Lease say that nothing is held.
type Lease struct {
	noCopy noCopy
	inner  innerLease
}

// An innerLease is one lease of the engine, or the leases of a group.
type innerLease interface {
	Context() context.Context
	Bind(ctx context.Context) (context.Context, context.CancelFunc)
	Carry(ctx context.Context) context.Context
	Err() error
	Name() string
	Owner() string
	Token() int64
	Tokens() map[string]int64
	Until() time.Time
	Wanted() <-chan struct{}
	Check(ctx context.Context) error
	Detach() ([]engine.Detached, error)
	Downgrade(ctx context.Context) error
	Extend(ctx context.Context) error
	Release() error
}

var (
	_ innerLease = (*engine.Lease)(nil)
	_ innerLease = (*engine.GroupLease)(nil)
)

// LeaseFrom returns the innermost lease that ctx belongs to: that of the Do, RDo or Run whose
// function was called with ctx, or the one that Bind bound. A context that comes from such a
// context belongs to the same lease. For a group it is the lease of the group.
//
// LeaseFrom returns false if ctx belongs to no lease, or is nil. It does not look whether the lease
// is still held: Err says so. Each call returns another *Lease for the same lease.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	if ctx == nil {
		return nil, false
	}
	inner, ok := engine.LeaseFrom(ctx).(innerLease)
	if !ok {
		return nil, false
	}
	return &Lease{inner: inner}, true
}

// LeasesFrom returns all leases that ctx belongs to, the innermost first: that of LeaseFrom, then
// the lease under whose context it was taken, and so on. Of a context that Bind made, the lease
// that was bound and its outer leases come before those of the other context. A lease may come
// twice if it is reached on two ways. All else is as for LeaseFrom.
func LeasesFrom(ctx context.Context) iter.Seq[*Lease] {
	return func(yield func(*Lease) bool) {
		if ctx == nil {
			return
		}
		engine.EachLease(ctx, func(lease engine.AnyLease) bool {
			inner, ok := lease.(innerLease)
			return !ok || yield(&Lease{inner: inner})
		})
	}
}

// endedContext returns a context that carries the values of ctx, and has ended with this cause.
func endedContext(ctx context.Context, cause error) context.Context {
	ended, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	cancel(cause)
	return ended
}

// Bind returns a context that ends with ctx or with the lease, whichever is first. It has the
// values and the deadline of ctx. Its cause is that of the one that ended first: of the lease a
// *LostError after a loss, context.Canceled after Release and Detach, and ErrClosed after
// Client.Close. After a call of cancel it is context.Canceled. Cancel need not be called.
//
// A caller that locks a name under the bound context enters the hold that this lease has of it.
// Next come the leases under whose context this one was taken, and then those that ctx carries.
// Goroutines that share the context therefore do not exclude each other.
//
// If the lease or ctx has ended already, the bound context is over from the start. If l is nil or
// the zero Lease, the cause is ErrNotHeld. If ctx is nil, it is an *ArgumentError. The lease is
// held until Release, whatever becomes of the bound context.
func (l *Lease) Bind(ctx context.Context) (bound context.Context, cancel context.CancelFunc) {
	none := ctx == nil
	if none {
		ctx = context.Background()
	}
	switch {
	case l.isNone():
		return endedContext(ctx, ErrNotHeld), func() {}
	case none:
		return endedContext(ctx, nilContext("Lease.Bind")), func() {}
	}
	return l.inner.Bind(ctx)
}

// Done returns a channel that is closed when the lease ends.
func (l *Lease) Done() <-chan struct{} {
	if l.isNone() {
		return endedContext(context.Background(), ErrNotHeld).Done()
	}
	return l.inner.Context().Done()
}

// Err returns nil while the lease can be trusted. It compares the clocks itself, so it is right
// even before any goroutine has noticed the end. Afterwards Err returns the *LostError, or
// ErrClosed. After Release and Detach it returns ErrNotHeld.
func (l *Lease) Err() error {
	if l.isNone() {
		return ErrNotHeld
	}
	return publicError("lease", l.inner.Name(), l.inner.Err())
}

// Name returns the name that is held. For a group it returns the first name in the order of bytes.
func (l *Lease) Name() string {
	if l.isNone() {
		return ""
	}
	return l.inner.Name()
}

// String returns the name and the token, for logs.
func (l *Lease) String() string {
	if l.isNone() {
		return "no lease"
	}
	return fmt.Sprintf("lease of %q with token %d", shorten(l.Name()), l.Token())
}

// Owner returns the id of WithOwner, or else an id of the hold's own, as Leader.Owner says it. For
// a group it returns the owner of the hold of Name.
func (l *Lease) Owner() string {
	if l.isNone() {
		return ""
	}
	return l.inner.Owner()
}

// Token returns the fencing token. It is larger than the token of every earlier holder of the name,
// and below 2^53. Entries into one hold share its token, and so do readers of one process that
// share a hold. A writer's token is larger than those of all readers and writers before it. For a
// group, it is the token of Name.
//
// A store that remembers the largest token it has seen, and refuses smaller ones, is safe from late
// holders. Holders of one Semaphore are not alone: such a store would refuse all of them except the
// last to come. Guard what they write with a Mutex and its token.
func (l *Lease) Token() int64 {
	if l.isNone() {
		return 0
	}
	return l.inner.Token()
}

// Tokens returns the token of every name that the lease holds: one name, or those of a group.
func (l *Lease) Tokens() map[string]int64 {
	if l.isNone() {
		return nil
	}
	return l.inner.Tokens()
}

// Until returns when trust ends if no renewal is confirmed before. Once trust has ended, that is
// not in the future. After a hand-over it is at first the end of the hand-over's claim, at most 500
// ms ahead, until the first renewal. For a group it is that of the name that ends first.
func (l *Lease) Until() time.Time {
	if l.isNone() {
		return time.Time{}
	}
	return l.inner.Until()
}

// Wanted returns a channel that is closed once another caller wants the name: when Client.Ask or
// Mutex.Ask asks for it, and with WithWanted or WithRetain as soon as anybody waits. For a group it
// is any of the names. The holder decides what to do; nothing is taken from it. It is the same
// channel at each call, and nil once the lease has ended, so wait for Done as well.
//
// From the first call on the client is subscribed while it has the lease. A request before
// that, or while no connection works, is not heard; a waiter asks again within 6 s. A quorum tells
// nothing.
func (l *Lease) Wanted() <-chan struct{} {
	if l.isNone() {
		return nil
	}
	return l.inner.Wanted()
}

// Check asks the server whether the hold is there. The round trip takes at most the smaller of a
// sixth of the TTL and 1 s. Nil says that it was there when the server answered. A *LostError says
// that it was not, or that the lease was lost before: the lease has ended. After a *StoreError or a
// *WaitError nothing is changed, and trust goes on as Until says. After Release, Check returns
// ErrNotHeld.
func (l *Lease) Check(ctx context.Context) error {
	if l.isNone() {
		return ErrNotHeld
	}
	if ctx == nil {
		return nilContext("Lease.Check")
	}
	return publicError("check", l.inner.Name(), l.inner.Check(ctx))
}

// Extend lets a lease of a lock WithoutRenewal last for another TTL from the moment at which the
// request was sent. It is for work that proves its progress, so that a holder that hangs does not
// hold on. Extend takes one round trip of at most the smaller of a sixth of the TTL and 1 s. Calls
// about one hold follow one another, and wait for a Downgrade.
//
// Extend does not pass the max hold. Once trust lasts to that, Extend returns nil and adds nothing.
// All entries into the hold are extended, as are all names of a group, in one request if the server
// can. The names of a group whose hold renews itself, as the caller entered it, are left as they
// are.
//
// The error is an *ArgumentError if the lease is renewed by itself. After a *LostError, ErrClosed,
// or ErrNotHeld after Release, the lease has ended. Other errors are those of every call: the lease
// goes on as Until says, and the hold may be extended at the server. The caller may try again. For
// a group, the errors of the names that were not extended are joined.
func (l *Lease) Extend(ctx context.Context) error {
	if l.isNone() {
		return ErrNotHeld
	}
	if ctx == nil {
		return nilContext("Lease.Extend")
	}
	err := l.inner.Extend(ctx)
	if errors.Is(err, engine.ErrRenewed) {
		return badArgument("Lease.Extend", "lease", "of "+shorten(l.inner.Name()), "one of WithoutRenewal")
	}
	return publicError("extend", l.inner.Name(), err)
}

// Release gives the lease back. It returns nil when that is done. The hold is free when all its
// entries are released, and the same request lets the next waiter in. If the last entry that writes
// an RWMutex is released while readers of the same hold stay, Release downgrades the hold. Release
// lasts at most the smaller of the remaining trust and Config.ReleaseTimeout. A lease of a group
// gives back all of its names, and joins the errors of those that failed.
//
// The lease is over after every call. The errors are:
//
//   - ErrNotHeld: the lease was released or detached before. ErrClosed: Client.Close gave it back.
//   - A *LostError: the lease was lost before, or the server says now that the hold had gone.
//   - An error that matches ErrUncertain: no answer came in time. The hold is then removed in the
//     background, or expires within its TTL. Or an answer was lost, and the hold was gone when the
//     release was sent again: it was given back, or it had been lost before that.
//   - A *StoreError: the server refused. The hold stays until its TTL is over.
func (l *Lease) Release() error {
	if l.isNone() {
		return ErrNotHeld
	}
	return publicError("release", l.inner.Name(), l.inner.Release())
}

// Downgrade turns a lease that writes an RWMutex into a lease that reads it, without a gap. The
// token stays the same, and no other holder comes between. Readers that wait enter at once.
// Downgrade takes one round trip, and is tried again until ctx or trust ends. Each entry into a
// hold is downgraded on its own, and other contenders get in with the last.
//
// The error is an *ArgumentError if the lease does not write an RWMutex, and ErrNotHeld after
// Release. It is the *LostError of a lost lease, or ErrClosed. After a *StoreError, a refusal, the
// lease writes as before. An error that matches ErrUncertain says that no answer came before ctx
// ended. The lease then reads, but whether other readers may enter is not known yet. The request is
// repeated in the background; without an answer the lease is lost when trust ends.
func (l *Lease) Downgrade(ctx context.Context) error {
	if l.isNone() {
		return ErrNotHeld
	}
	if ctx == nil {
		return nilContext("Lease.Downgrade")
	}
	err := l.inner.Downgrade(ctx)
	if errors.Is(err, engine.ErrNotWriter) {
		return badArgument("Lease.Downgrade", "lease", "of "+shorten(l.inner.Name()), "one that writes an RWMutex")
	}
	return publicError("downgrade", l.inner.Name(), err)
}

func (l *Lease) isNone() bool { return l == nil || l.inner == nil }
