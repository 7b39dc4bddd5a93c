// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"errors"
	"reflect"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// New returns a store on a client of valkey.NewClient. For a nil client it returns a store whose
// methods all fail with the reason. holdfast.New refuses such a store. New neither sends anything
// nor starts a goroutine, and never panics.
func New(client valkey.Client) store.Store {
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return store.Unusable(errors.New("valkeystore: the client is nil"))
	}
	if client.Mode() == valkey.ClientModeCluster {
		return &cluster{client: client}
	}
	return &server{client}
}
