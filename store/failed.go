package store

import (
	"context"
	"fmt"
)

// A PoolError is the Err of a command that found no free connection in the client's pool. The
// command is unsent.
type PoolError struct {
	InUse, Size int // Size 0: neither is known
}

func (e *PoolError) Error() string {
	if e.Size == 0 {
		return "all are in use"
	}
	return fmt.Sprintf("%d of %d in use", e.InUse, e.Size)
}

// Unsent says of n commands that they were not sent.
func Unsent(n int, err error) []Reply {
	replies := make([]Reply, n)
	for i := range replies {
		replies[i] = Reply{Err: err, Unsent: true}
	}
	return replies
}

// Unusable returns a store that can never work, for a reason. It is a Checker, and all its methods
// fail with the reason.
func Unusable(why error) Store { return unusable{why} }

type unusable struct{ why error }

func (u unusable) Unusable() error { return u.why }

func (u unusable) Do(_ context.Context, _ string, commands []Command) []Reply {
	return Unsent(len(commands), u.why)
}

func (u unusable) Nodes(context.Context) (Nodes, error) { return Nodes{}, u.why }

func (u unusable) Refresh(context.Context, string) error { return u.why }

func (u unusable) Renew(string) {}

func (u unusable) Listen(context.Context, string, bool, Events) (Listener, error) {
	return nil, u.why
}
