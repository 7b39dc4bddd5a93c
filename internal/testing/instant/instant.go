// Package instant has a store that answers at once, for tests of what a client itself costs.
package instant

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/store"
)

// A Store answers each request of a pair of Lock and Release as a server would that nobody else
// uses. It has no channels.
type Store struct{ store.Store }

// Do implements store.Store.
func (Store) Do(_ context.Context, _ string, commands []store.Command) []store.Reply {
	replies := make([]store.Reply, len(commands))
	for i, command := range commands {
		switch {
		case len(command) == 1: // TIME
			replies[i].Value = []any{"1795231125", "887127"}
		case len(command) == 11: // a release
			replies[i].Value = int64(1)
		default:
			replies[i].Value = "H17952311258871271|1795231125887127"
		}
	}
	return replies
}

// Nodes implements store.Store.
func (Store) Nodes(context.Context) (store.Nodes, error) { return store.Nodes{}, nil }

// Listen implements store.Store.
func (Store) Listen(context.Context, string, bool, store.Events) (store.Listener, error) {
	return nil, errors.New("NOPERM it has no channels")
}
