package rueidisstore

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/store"
)

// Hasty is a subscription whose times are shorter: how long nothing may be heard, and how long a
// connection without channels stays.
func Hasty(client rueidis.Client, sink store.Sink, quiet, linger time.Duration) store.Subscription {
	s := newSubscription(sink, func(context.Context) (rueidis.Client, error) { return client, nil })
	s.quiet, s.linger = quiet, linger
	return s
}
