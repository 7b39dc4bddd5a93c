package steps

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/steps/naive"
)

// A naiveLock is a lock of package naive as a process uses it.
type naiveLock struct {
	lock    tryLocker
	actor   *actor
	storage *redis.Client // reports its commands
}

// A tryLocker is what all locks of package naive have.
type tryLocker interface {
	TryLock(context.Context) (bool, error)
	Unlock(context.Context) error
}

func (a *actor) naive(l tryLocker) lock { return &naiveLock{l, a, a.redis(0)} }

func (l *naiveLock) try(ctx context.Context) (bool, error) { return l.lock.TryLock(ctx) }

// wait tries again and again, unless the lock itself knows how to wait.
func (l *naiveLock) wait(ctx context.Context) error {
	if waiter, ok := l.lock.(interface{ Lock(context.Context) error }); ok {
		return waiter.Lock(ctx)
	}
	return naive.Poll(ctx, l.lock.TryLock, l.actor.role.Every)
}

func (l *naiveLock) release(ctx context.Context) error { return l.lock.Unlock(ctx) }

// write has nothing by which the storage could refuse it.
func (l *naiveLock) write(ctx context.Context) error {
	return l.storage.Set(ctx, storageName, l.actor.role.Name, 0).Err()
}

func (l *naiveLock) token() int64 { return 0 }

// mayWork asks a lock that has a watchdog. The others never know.
func (l *naiveLock) mayWork() error {
	if watched, ok := l.lock.(interface{ Err() error }); ok {
		return watched.Err()
	}
	return nil
}
