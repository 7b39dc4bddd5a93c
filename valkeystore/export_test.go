// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// Hasty is a subscription whose times are shorter: how long nothing may be heard, and how long a
// connection without channels stays.
func Hasty(client valkey.Client, sink store.Sink, quiet, linger time.Duration) store.Subscription {
	s := newSubscription(sink, func(context.Context) (valkey.Client, error) { return client, nil })
	s.quiet, s.linger = quiet, linger
	return s
}
