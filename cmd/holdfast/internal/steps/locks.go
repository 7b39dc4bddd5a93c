package steps

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/steps/naive"
)

// A lock is what a process uses: a naive one, or that of holdfast.
type lock interface {
	try(context.Context) (bool, error)
	wait(context.Context) error
	release(context.Context) error
	write(context.Context) error // to the storage that the lock protects, without another look at the lock
	token() int64                // of the hold; 0: there is none
	mayWork() error              // why the holder must not work on; nil: it may, as far as it knows
}

// locks has the locks by the names of roles.
var locks = map[string]func(*actor) (lock, error){
	"timestamp": naiveLocks(func(a *actor) tryLocker {
		clock := func() time.Time { return time.Now().Add(a.role.Clock) }
		return naive.NewTimestamp(a.redis(0), lockName, a.role.TTL, clock)
	}),
	"expire":  naiveLocks(func(a *actor) tryLocker { return naive.NewExpire(a.redis(0), lockName, a.role.TTL) }),
	"delete":  naiveLocks(func(a *actor) tryLocker { return naive.NewDelete(a.redis(0), lockName, a.role.TTL) }),
	"compare": naiveLocks(func(a *actor) tryLocker { return naive.NewCompare(a.redis(0), lockName, a.role.Name, a.role.TTL) }),
	"unique":  naiveLocks(func(a *actor) tryLocker { return naive.NewUnique(a.redis(0), lockName, a.role.Name, a.role.TTL) }),
	"reentrant": naiveLocks(func(a *actor) tryLocker {
		return naive.NewReentrant(a.redis(0), lockName, a.role.Name, a.role.TTL)
	}),
	"watchdog": naiveLocks(func(a *actor) tryLocker { return naive.NewWatchdog(a.redis(0), lockName, a.role.Name, a.role.TTL) }),
	"herd":     naiveLocks(func(a *actor) tryLocker { return naive.NewHerd(a.redis(0), lockName, a.role.Name, a.role.TTL) }),
	"reader":   naiveLocks(func(a *actor) tryLocker { return naive.NewReader(a.redis(0), lockName, a.role.Name, a.role.TTL) }),
	"writer":   naiveLocks(func(a *actor) tryLocker { return naive.NewWriter(a.redis(0), lockName, a.role.Name, a.role.TTL) }),
	"redlock": naiveLocks(func(a *actor) tryLocker {
		var masters []*redis.Client
		for n := range a.role.Addrs {
			masters = append(masters, a.redis(n))
		}
		return naive.NewRedLock(masters, lockName, a.role.Name, a.role.TTL)
	}),

	"holdfast":        func(a *actor) (lock, error) { return a.holdfast() },
	"holdfast fixed":  func(a *actor) (lock, error) { return a.holdfast(holdfast.WithoutRenewal()) },
	"holdfast reader": (*actor).holdfastReader,
	"holdfast writer": (*actor).holdfastWriter,
}

func naiveLocks(open func(*actor) tryLocker) func(*actor) (lock, error) {
	return func(a *actor) (lock, error) { return a.naive(open(a)), nil }
}
