package wire

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/store"
)

// A complete store has a reply to every request. The store behind it may break its contract and
// return fewer.
type complete struct{ store.Store }

var errMissingReply = errors.New("the store returned fewer replies than it was given requests")

// Do implements store.Store.
func (c complete) Do(ctx context.Context, requests []store.Request) []store.Reply {
	replies := c.Store.Do(ctx, requests)
	for len(replies) < len(requests) {
		replies = append(replies, store.Reply{Err: errMissingReply})
	}
	return replies
}
