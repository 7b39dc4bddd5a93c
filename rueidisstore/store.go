package rueidisstore

import (
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
		return store.Unusable(errors.New("rueidisstore: the client is nil"))
	}
	if client.Mode() == rueidis.ClientModeCluster {
		return &cluster{client: client}
	}
	return &server{client}
}
