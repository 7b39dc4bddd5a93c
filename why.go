package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// Why returns why a name is waited for: who holds it, what these holders wait for themselves, who
// holds that, and so on. A waiter WithDeadlockCheck tells what it holds. Of any other, its process
// and its owner are compared with those of the holds, and the Chain says Perhaps.
//
// It looks at all names as List does, so it needs the permission to SCAN, lasts as long as that
// takes, and is no picture of one moment: nothing may be decided by it. It keeps what it knows of
// the names that are waited for, the first 100 holds and waiters of each. A quorum has no queue, so
// there the Chain has the holds of the name alone. The errors are as for List.
func (c *Client) Why(ctx context.Context, name string) (lockinfo.Chain, error) {
	if err := c.checkCall(ctx, "Client.Why", name); err != nil {
		return lockinfo.Chain{}, err
	}
	first, err := c.Inspect(ctx, name)
	if err != nil {
		return lockinfo.Chain{}, err
	}
	var all []lockinfo.Info
	if c.engine.Queues() {
		for info, err := range c.List(ctx, ListOptions{Contended: true}) {
			if err != nil {
				return lockinfo.Chain{}, err
			}
			all = append(all, info)
		}
	}
	return lockinfo.NewChain(first, all), nil
}
