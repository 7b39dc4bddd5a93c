package rueidisstore

import (
	"context"
	"errors"
	"reflect"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/store"
)

// New returns a store on a client of rueidis.NewClient. For a nil client it returns a store whose
// methods all fail with the reason. holdfast.New refuses such a store. New neither sends anything
// nor starts a goroutine, and never panics.
func New(client rueidis.Client) store.Store {
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return unusable{errors.New("rueidisstore: the client is nil")}
	}
	if client.Mode() == rueidis.ClientModeCluster {
		return &cluster{client: client}
	}
	return &single{client}
}

// An unusable store says why it is.
type unusable struct{ why error }

// Unusable makes holdfast.New refuse it.
func (u unusable) Unusable() error { return u.why }

func (u unusable) Do(_ context.Context, _ string, commands []store.Command) []store.Reply {
	return unsent(len(commands), u.why)
}

func (u unusable) Nodes(context.Context) (store.Nodes, error) { return store.Nodes{}, u.why }

func (u unusable) Refresh(context.Context, string) error { return u.why }

func (u unusable) Listen(context.Context, string, bool, store.Events) (store.Listener, error) {
	return nil, u.why
}

// unsent says of so many commands that they were not sent.
func unsent(n int, err error) []store.Reply {
	replies := make([]store.Reply, n)
	for i := range replies {
		replies[i] = store.Reply{Err: err, Unsent: true}
	}
	return replies
}
