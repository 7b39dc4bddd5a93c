package history

import (
	"context"

	"github.com/holdfast-go/holdfast"
)

// A Way is a method that takes a lock.
type Way func(context.Context) (*holdfast.Lease, error)

// WayOf returns how a client takes what the record of a call asks for.
func WayOf(c *holdfast.Client, asked Record, options ...holdfast.Option) Way {
	either := func(lock, try Way) Way {
		if asked.Kind == TryLock {
			return try
		}
		return lock
	}
	switch asked.Type {
	case ReadWrite:
		rw := c.RWMutex(asked.Name, options...)
		if asked.Shares {
			return either(rw.RLock, rw.TryRLock)
		}
		return either(rw.Lock, rw.TryLock)
	case Semaphore:
		s := c.Semaphore(asked.Name, asked.Size, options...)
		return either(
			func(ctx context.Context) (*holdfast.Lease, error) { return s.Acquire(ctx, asked.Weight) },
			func(ctx context.Context) (*holdfast.Lease, error) { return s.TryAcquire(ctx, asked.Weight) })
	case Election:
		election := c.Election(asked.Name, options...)
		return either(election.Campaign, election.TryCampaign)
	case Group:
		group := c.All(asked.Names, options...)
		return either(group.Lock, group.TryLock)
	}
	mutex := c.Mutex(asked.Name, options...)
	return either(mutex.Lock, mutex.TryLock)
}
