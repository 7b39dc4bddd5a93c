package engine

import "context"

// This file has what contexts carry of leases. A lease's context carries that lease, which knows
// the context that it was taken with. So a context carries all leases under whose contexts its
// innermost lease was taken. A context that a lease was bound to carries those of both.

// leaseKey is the key of what a context carries: a *Lease, a *GroupLease or a *binding.
type leaseKey struct{}

// An AnyLease is a *Lease or a *GroupLease.
type AnyLease interface {
	Context() context.Context
	Err() error
}

// A binding is a lease bound to a context. The lease is the inner one of the two.
type binding struct {
	lease AnyLease
	ctx   context.Context
}

// LeaseFrom is the innermost lease that a context carries, ended or not; nil: it carries none.
func LeaseFrom(ctx context.Context) AnyLease {
	switch c := ctx.Value(leaseKey{}).(type) {
	case AnyLease:
		return c
	case *binding:
		return c.lease
	}
	return nil
}

// findLease returns the first lease that suits, of those that a context carries, in the order of
// EachLease; nil: none does.
func findLease(ctx context.Context, suits func(*Lease) bool) (found *Lease) {
	EachLease(ctx, func(lease AnyLease) bool {
		switch c := lease.(type) {
		case *Lease:
			if suits(c) {
				found = c
			}
		case *GroupLease:
			for i := len(c.parts) - 1; i >= 0 && found == nil; i-- {
				if suits(c.parts[i]) {
					found = c.parts[i]
				}
			}
		}
		return found == nil
	})
	return found
}

// EachLease calls visit with the leases that a context carries, ended or not, until it returns
// false. The inner ones come first, and of a binding those of the lease. EachLease looks at each
// binding once: a lease that was taken under a bound context, and bound to that again, leads there
// on two ways. A lease may be visited twice.
func EachLease(ctx context.Context, visit func(AnyLease) bool) {
	var seen map[*binding]bool
	var later []context.Context // of the bindings on the way, the last one first
	next := ctx.Value(leaseKey{})
	for {
		switch c := next.(type) {
		case AnyLease:
			if !visit(c) {
				return
			}
			next = parentOf(c).Value(leaseKey{})
			continue
		case *binding:
			if !seen[c] {
				if seen == nil {
					seen = make(map[*binding]bool)
				}
				seen[c] = true
				later = append(later, c.ctx)
				next = c.lease
				continue
			}
		}
		last := len(later) - 1
		if last < 0 {
			return
		}
		next, later = later[last].Value(leaseKey{}), later[:last]
	}
}

// parentOf is the context that a lease was taken with.
func parentOf(lease AnyLease) context.Context {
	switch c := lease.(type) {
	case *Lease:
		return c.parent
	case *GroupLease:
		return c.parts[0].parent
	}
	return context.Background()
}

// Bind is a context with the values and the deadline of ctx that ends with ctx or with the lease,
// whichever is first, with the cause of that end. A lock under it enters the holds of both: those
// that the lease's context carries, and those that ctx carries. Nothing of it is left once it has
// ended, whether or not cancel is called.
func (l *Lease) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return bindLease(ctx, l)
}

// Bind is Lease.Bind for all parts.
func (g *GroupLease) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return bindLease(ctx, g)
}

func bindLease(ctx context.Context, lease AnyLease) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(ctx)
	_ = lease.Err() // if its trust is over by the clocks, its context ends now
	held := lease.Context()
	if held.Err() != nil {
		cancel(context.Cause(held))
	}
	detach := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	// The lease may last for much longer than ctx. It keeps nothing of a context that is over.
	forget := context.AfterFunc(bound, func() { detach() })
	return context.WithValue(bound, leaseKey{}, &binding{lease, ctx}), func() {
		forget()
		detach()
		cancel(context.Canceled)
	}
}
