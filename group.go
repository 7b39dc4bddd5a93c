package holdfast

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/limits"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Group is several names that are held together or not at all. Each is held as a Mutex of that
// name: a group and a mutex, or two groups, exclude each other if they share a name. Groups do not
// deadlock, in whatever order their callers list the names.
type Group struct {
	names  []string
	group  *engine.Group
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// All makes a handle for 1 to 1,000 names, as Client says. A name that is listed twice counts once.
func (c *Client) All(names []string, options ...Option) *Group {
	if c == nil || c.engine == nil {
		return &Group{err: zeroHandleError("All", "a client that New made")}
	}
	g := &Group{names: slices.Compact(slices.Sorted(slices.Values(names)))}
	var bad problems
	if n := len(g.names); n == 0 || n > limits.MaxGroup {
		bad.add("names", fmt.Sprintf("%d names", n), "from 1 to 1000 names")
	} else {
		for _, name := range g.names {
			bad.check(name != "" && len(name) <= limits.MaxText, "names", shorten(name), "each from 1 to 1024 bytes")
		}
	}
	s := c.applyOptions("Group", options)
	bad = append(bad, s.invalidOptions("Group", "names are looked at above", c.config.MaxTTL)...)
	if g.err = bad.err("All"); g.err == nil {
		s = s.reconcile()
		g.group = c.engine.NewGroup(
			g.names, protocol.Spec{Kind: protocol.Mutex, Owner: s.owner, Label: s.label}, s.Options)
	}
	return g
}

// Lock waits until all names are held. ctx, and WithWait or Config.Wait, bound the waiting for all
// of them together. If the server can, Lock asks for all names in one round trip. If others hold
// some, or the names lie on different nodes, it waits for one after the other, in the order of
// bytes. It holds the names that it has meanwhile. If it loses one of them, it starts again.
//
// The lease has the token of each name (Tokens). It is lost when any of its names is lost; the
// other names then stay held until Release. If ctx belongs to a lease that holds a name already,
// Lock enters that hold. Such a caller must take care of the order. The errors are those of
// Mutex.Lock, for the name that was waited for or refused.
func (g *Group) Lock(ctx context.Context) (*Lease, error) {
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	return g.wrapLease(g.group.Acquire(ctx))
}

// TryLock asks once: in one round trip if the server can, otherwise name by name. All else is as
// for Mutex.TryLock. A *HeldError describes one of the names that others hold.
func (g *Group) TryLock(ctx context.Context) (*Lease, error) {
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	return g.wrapLease(g.group.Try(ctx))
}

// Do runs fn while all names are held, as Mutex.Do does.
func (g *Group) Do(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "Group.Do", g.Lock, fn)
}

// TryDo asks once for all names, and runs fn as Mutex.TryDo does.
func (g *Group) TryDo(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "Group.TryDo", g.TryLock, fn)
}

// check refuses a handle that no client made, a nil context, and a handle with bad arguments.
func (g *Group) check(ctx context.Context) error {
	if g == nil || g.group == nil && g.err == nil {
		return zeroHandleError("Group", "made by Client.All")
	}
	return checkHandle(ctx, "Group", true, g.err)
}

// wrapLease translates what the engine answers.
func (g *Group) wrapLease(inner *engine.GroupLease, err error) (*Lease, error) {
	if err != nil {
		return nil, publicError("lock", g.names[0], err)
	}
	return &Lease{inner: inner}, nil
}
