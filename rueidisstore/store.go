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
		return useless{errors.New("rueidisstore: the client is nil")}
	}
	if client.Mode() == rueidis.ClientModeCluster {
		return newCluster(client)
	}
	return &single{client}
}

// A useless store says why it is.
type useless struct{ why error }

// Unusable makes holdfast.New refuse it.
func (u useless) Unusable() error { return u.why }

func (u useless) Do(_ context.Context, reqs []store.Request) []store.Reply {
	return unsent(make([]store.Reply, len(reqs)), u.why)
}

func (u useless) Subscribe(context.Context, store.Sink) (store.Subscription, error) {
	return nil, u.why
}

func (u useless) Describe(context.Context) (store.Topology, error) {
	return store.Topology{}, u.why
}

// unsent says of all replies that their requests were not sent.
func unsent(replies []store.Reply, err error) []store.Reply {
	for i := range replies {
		replies[i] = store.Reply{Err: err, Unsent: true}
	}
	return replies
}
