package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/steps/naive"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// A lock is what a process uses: a naive one, or that of holdfast.
type lock struct {
	try   func(context.Context) (bool, error)
	wait  func(context.Context) error
	leave func(context.Context) error
	write func(context.Context) error // to the storage that the lock protects, without another look at the lock
	err   func() error                // why the holder must not work on; nil: it may, as far as it knows
}

// locks has the locks by the names of roles.
var locks = map[string]func(*actor) (*lock, error){
	"timestamp": func(a *actor) (*lock, error) {
		now := func() time.Time { return time.Now().Add(a.role.Clock) }
		return a.naiveLock(naive.Timestamp{Key: a.key(0), Now: now})
	},
	"redlock":   func(a *actor) (*lock, error) { return a.naiveLock(naive.NewRedLock(a.keys()...)) },
	"give-back": func(a *actor) (*lock, error) { return a.naiveLock(naive.NewGiveBack(a.keys()...)) },
	"exists":    onKey(func(k naive.Key) tryLocker { return naive.Exists{Key: k} }),
	"expire":    onKey(func(k naive.Key) tryLocker { return naive.Expire{Key: k} }),
	"delete":    onKey(func(k naive.Key) tryLocker { return naive.Delete{Key: k} }),
	"compare":   onKey(func(k naive.Key) tryLocker { return naive.Compare{Key: k} }),
	"unique":    onKey(func(k naive.Key) tryLocker { return naive.Unique{Key: k} }),
	"reentrant": onKey(func(k naive.Key) tryLocker { return naive.Reentrant{Key: k} }),
	"watchdog":  onKey(func(k naive.Key) tryLocker { return &naive.Watchdog{Unique: naive.Unique{Key: k}} }),
	"herd":      onKey(func(k naive.Key) tryLocker { return naive.Herd{Unique: naive.Unique{Key: k}} }),
	"reader":    onKey(func(k naive.Key) tryLocker { return naive.ReadWrite{Key: k} }),
	"watched-reader": onKey(func(k naive.Key) tryLocker {
		return &naive.Readers{ReadWrite: naive.ReadWrite{Key: k}}
	}),
	"two-key-reader": onKey(func(k naive.Key) tryLocker { return naive.TwoKeys{Key: k} }),
	"two-key-writer": onKey(func(k naive.Key) tryLocker { return naive.TwoKeys{Key: k, Write: true} }),
	"capped": onKey(func(k naive.Key) tryLocker {
		return &naive.Capped{Unique: naive.Unique{Key: k}, Renewals: 3}
	}),
	"writer": onKey(func(k naive.Key) tryLocker { return naive.ReadWrite{Key: k, Write: true} }),

	"holdfast": holdfastLock(func(c *holdfast.Client) locker { return c.Mutex(lockName) }),
	"holdfast-fixed": holdfastLock(func(c *holdfast.Client) locker {
		return c.Mutex(lockName, holdfast.WithoutRenewal())
	}),
	"holdfast-reader": holdfastLock(func(c *holdfast.Client) locker { return reader{c.RWMutex(lockName)} }),
	"holdfast-fixed-reader": holdfastLock(func(c *holdfast.Client) locker {
		return reader{c.RWMutex(lockName, holdfast.WithoutRenewal())}
	}),
	"holdfast-capped": holdfastLock(func(c *holdfast.Client) locker {
		return c.Mutex(lockName, holdfast.WithMaxHold(2*ttl))
	}),
	"holdfast-writer": holdfastLock(func(c *holdfast.Client) locker { return c.RWMutex(lockName) }),
}

// A tryLocker is what all locks of package naive have.
type tryLocker interface {
	TryLock(context.Context) (bool, error)
	Unlock(context.Context) error
}

// key is the key of a naive lock at a server of the role.
func (a *actor) key(n int) naive.Key {
	return naive.NewKey(a.redis(n), lockName, a.role.Name, a.role.TTL)
}

// keys are those of a naive lock at all servers of the role.
func (a *actor) keys() (keys []naive.Key) {
	for n := range a.role.Addrs {
		keys = append(keys, a.key(n))
	}
	return keys
}

func onKey(open func(naive.Key) tryLocker) func(*actor) (*lock, error) {
	return func(a *actor) (*lock, error) { return a.naiveLock(open(a.key(0))) }
}

// naiveLock is a lock of package naive as a process uses it.
func (a *actor) naiveLock(naiveLock tryLocker) (*lock, error) {
	storage := a.redis(0)
	l := &lock{
		try:  naiveLock.TryLock,
		wait: func(ctx context.Context) error { return naive.Poll(ctx, naiveLock.TryLock, a.role.Every) },
		leave: func(ctx context.Context) error {
			a.line("Unlock ...")
			return naiveLock.Unlock(ctx)
		},
		write: func(ctx context.Context) error { return storage.Set(ctx, storageName, a.role.Name, 0).Err() },
		err:   func() error { return nil },
	}
	if waiter, ok := naiveLock.(interface{ Lock(context.Context) error }); ok {
		l.wait = waiter.Lock
	}
	if watched, ok := naiveLock.(interface{ Err() error }); ok {
		l.err = watched.Err
	}
	return l, nil
}

// A locker is a lock of holdfast.
type locker interface {
	TryLock(context.Context) (*holdfast.Lease, error)
	Lock(context.Context) (*holdfast.Lease, error)
}

// A reader is the side of an RWMutex that reads.
type reader struct{ *holdfast.RWMutex }

func (r reader) TryLock(ctx context.Context) (*holdfast.Lease, error) { return r.TryRLock(ctx) }
func (r reader) Lock(ctx context.Context) (*holdfast.Lease, error)    { return r.RLock(ctx) }

// fencedWrite is a storage that remembers the largest token, and refuses a smaller one.
const fencedWrite = `-- write with a token
if tonumber(redis.call('HGET', KEYS[1], 'token') or '0') > tonumber(ARGV[1]) then
  return 0
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'by', ARGV[2])
return 1`

// holdfastLock is a lock of the library as a process uses it.
func holdfastLock(open func(*holdfast.Client) locker) func(*actor) (*lock, error) {
	return func(a *actor) (*lock, error) {
		client, err := a.holdfast()
		if err != nil {
			return nil, err
		}
		holdfastLock, storage := open(client), a.redis(0)
		var lease *holdfast.Lease
		enter := func(call string, l *holdfast.Lease, err error) error {
			if err == nil {
				lease = l
				a.line("%s -> lease with token %d", call, lease.Token())
			}
			return err
		}
		return &lock{
			try: func(ctx context.Context) (bool, error) {
				l, err := holdfastLock.TryLock(ctx)
				err = enter("TryLock", l, err)
				var held *holdfast.HeldError
				switch {
				case errors.As(err, &held):
					a.line("TryLock -> held by %s", held.Holder)
					return false, nil
				case errors.Is(err, holdfast.ErrUnavailable):
					a.line("TryLock -> refused: no answer in time")
					return false, nil
				}
				return err == nil, err
			},
			wait: func(ctx context.Context) error {
				a.line("Lock ...")
				l, err := holdfastLock.Lock(ctx)
				return enter("Lock", l, err)
			},
			leave: func(context.Context) error {
				a.line("Release ...")
				err := lease.Release()
				if err != nil && !errors.Is(err, holdfast.ErrLost) {
					return err
				}
				a.line("Release -> %s", leaseOutcome(err))
				return nil
			},
			write: func(ctx context.Context) error {
				return storage.Eval(ctx, fencedWrite, []string{storageName}, fmt.Sprint(lease.Token()),
					a.role.Name).Err()
			},
			err: func() error {
				if err := lease.Err(); err != nil {
					return errors.New(leaseOutcome(err))
				}
				return nil
			},
		}, nil
	}
}

// leaseOutcome is an error of a lease without the name of the lock, which is always the same.
func leaseOutcome(err error) string {
	var lost *holdfast.LostError
	switch {
	case err == nil:
		return text("ok")
	case errors.As(err, &lost):
		return fmt.Sprintf(text("the lease is lost, %s"), text(string(lost.Reason)))
	}
	return err.Error()
}

// holdfast is a client of the server of the role, or of a quorum if the role has several. It is
// closed before its connections.
func (a *actor) holdfast() (client *holdfast.Client, err error) {
	config := &holdfast.Config{Label: a.role.Name, TTL: a.role.TTL, MaxTTL: a.role.TTL}
	var servers []store.Store
	for n := range a.role.Addrs {
		servers = append(servers, redisstore.New(a.quietRedis(n)))
	}
	if len(servers) == 1 {
		client, err = holdfast.New(servers[0], config)
	} else {
		client, err = holdfast.NewQuorum(servers, config)
	}
	if err == nil {
		a.closers = slices.Insert(a.closers, 0, io.Closer(client))
	}
	return client, err
}
