package holdfast

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// This file has what the types that give leases have in common.

func zeroHandleError(what, want string) error { return badArgument(what, what, nil, want) }

// checkHandle refuses a handle that no client made, a nil context, and a handle with bad arguments.
func checkHandle(ctx context.Context, kind string, made bool, wrong error) error {
	switch {
	case wrong != nil:
		return wrong
	case !made:
		return zeroHandleError(kind, "made by Client."+kind)
	case ctx == nil:
		return nilContext(kind)
	}
	return nil
}

// newLease translates what the engine answers. Some arguments are known to be bad only to the
// engine or the server; they cause an *ArgumentError too.
func newLease(kind string, lock *engine.Lock, inner *engine.Lease, err error) (*Lease, error) {
	if err == nil {
		return &Lease{inner: inner}, nil
	}
	spec := lock.Spec()
	if bad := argumentError(kind, spec.Name, spec.Owner, err); bad != nil {
		return nil, bad
	}
	return nil, publicError("lock", spec.Name, err)
}

// argumentError returns an *ArgumentError if err says that an argument of a lock is bad, and nil
// otherwise.
func argumentError(kind, name, owner string, err error) error {
	var (
		bad      problems
		mismatch *protocol.Mismatch
		upgrade  *protocol.Upgrade
	)
	switch {
	case errors.Is(err, engine.ErrReader):
		bad.add("ctx", "of a lease that reads "+shorten(name),
			"one without such a lease: release it before you write (two owners that upgraded would wait for each "+
				"other for ever)")
	case errors.As(err, &upgrade):
		bad.add("owner", shorten(owner),
			"one that does not read this name: release that before you write (two owners that upgraded would wait "+
				"for each other for ever)")
	case errors.As(err, &mismatch):
		bad.add("permits", mismatch.Want, permitsText(mismatch.Have))
	}
	return bad.err(handleText(kind, name))
}

// handleText returns how an error names a handle.
func handleText(kind, name string) string { return fmt.Sprintf("%s(%q)", kind, shorten(name)) }

// do runs fn under a lease, and releases the lease at the end.
func do(ctx context.Context, call string, lock func(context.Context) (*Lease, error), fn func(context.Context) error) (
	err error) {
	if fn == nil {
		return badArgument(call, "fn", nil, "not nil")
	}
	l, err := lock(ctx)
	if err != nil {
		return err
	}
	held, cancel := context.WithCancelCause(l.inner.Carry(ctx))
	lease := l.inner.Context()
	stop := context.AfterFunc(lease, func() { cancel(context.Cause(lease)) })
	defer func() {
		stop()
		lost := l.Err()
		if errors.Is(lost, ErrNotHeld) { // fn released it
			lost = nil
		}
		released := l.inner.Release()
		cancel(context.Canceled)
		if lost == nil && (errors.Is(released, ErrLost) || errors.Is(released, engine.ErrGoneLater)) {
			lost = publicError("release", l.inner.Name(),
				released) // only the server knew; all else goes to the observer
		}
		if lost != nil && !errors.Is(err, lost) {
			err = errors.Join(err, lost)
		}
	}()
	return fn(held)
}
