package holdfast

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Group is names that are held together or not at all, each as a Mutex of that name: a group and a mutex, or two
// groups, exclude each other where they share a name. However its callers order the names, groups do not deadlock.
// Handles have no state of their own, are cheap, and safe for concurrent use. The zero Group and nil return errors.
type Group struct {
	names  []string
	group  *engine.Group
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// maxGroup is how many names a group may have.
const maxGroup = 1000

// All makes a handle for up to 1,000 names, each 1 byte to 1 KiB, any bytes; one that is named twice counts once. It
// sends nothing and cannot fail: what is wrong with the names or the options is an *ArgumentError from each of its methods.
func (c *Client) All(names []string, options ...Option) *Group {
	if c == nil || c.engine == nil {
		return &Group{err: zeroHandle("All", "a client that New made")}
	}
	g := &Group{names: slices.Compact(slices.Sorted(slices.Values(names)))}
	var bad problems
	if n := len(g.names); n == 0 || n > maxGroup {
		bad.add("names", fmt.Sprintf("%d names", n), "from 1 to 1000 names")
	} else {
		for _, name := range g.names {
			bad.check(name != "" && len(name) <= maxText, "names", shortened(name), "each from 1 to 1024 bytes")
		}
	}
	s := c.apply(options)
	bad = append(bad, s.wrong("Group", "names are looked at above", c.config.MaxTTL)...)
	if g.err = bad.err("All"); g.err == nil {
		s = s.agreed()
		g.group = c.engine.Group(g.names, protocol.Spec{Kind: protocol.Mutex, Owner: s.owner, Label: s.label}, s.Options)
	}
	return g
}

// Lock waits until all names are held, bounded by ctx alone. Where the server can, it asks for all of them in one round
// trip; when some are held by others, or lie on different nodes, it waits for one after the other, in the order of their
// bytes, and holds those that it has meanwhile. One that is lost on the way starts it anew.
//
// The lease has the token of each name (Tokens), and is lost when any of them is; the others stay held, then, until it
// is released. Release gives back all; its error joins those of the names that failed. A name that is held under
// ctx's lease already is entered; whoever holds one lock and waits for another this way must take care of the order.
//
// The error is as Mutex.Lock's, about the name that was waited for or refused. After an error nothing is held by this call.
func (g *Group) Lock(ctx context.Context) (*Lease, error) {
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	return g.lease(g.group.Acquire(ctx))
}

// TryLock asks once: in one round trip where the server can, else name by name. The error is as Mutex.TryLock's; a
// *HeldError is about one of the names that others hold. After an error nothing is held by this call.
func (g *Group) TryLock(ctx context.Context) (*Lease, error) {
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	return g.lease(g.group.Try(ctx))
}

// Do runs fn while all names are held. It is as Mutex.Do, also in its errors.
func (g *Group) Do(ctx context.Context, fn func(context.Context) error) error {
	return do(ctx, "Group.Do", g.Lock, fn)
}

// check refuses handles and contexts that are none.
func (g *Group) check(ctx context.Context) error {
	if g == nil || g.group == nil && g.err == nil {
		return zeroHandle("Group", "made by Client.All")
	}
	return usable(ctx, "Group", true, g.err)
}

// lease is the public form of what the engine answers.
func (g *Group) lease(inner *engine.GroupLease, err error) (*Lease, error) {
	if err != nil {
		return nil, public("lock", g.names[0], err)
	}
	return &Lease{inner: inner}, nil
}
