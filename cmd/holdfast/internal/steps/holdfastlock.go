package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// A holdfastLock is a handle of the library as a process uses it.
type holdfastLock struct {
	actor        *actor
	tryIt, await func(context.Context) (*holdfast.Lease, error)
	storage      *redis.Client // reports its commands
	lease        *holdfast.Lease
}

// holdfast is a mutex of the library, on one server, or on a quorum if the role has several.
func (a *actor) holdfast(options ...holdfast.Option) (lock, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	mutex := client.Mutex(lockName, options...)
	return &holdfastLock{actor: a, tryIt: mutex.TryLock, await: mutex.Lock, storage: a.redis(0)}, nil
}

// holdfastReader and holdfastWriter are the two sides of a read-write lock of the library.
func (a *actor) holdfastReader() (lock, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	rw := client.RWMutex(lockName)
	return &holdfastLock{actor: a, tryIt: rw.TryRLock, await: rw.RLock}, nil
}

func (a *actor) holdfastWriter() (lock, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	rw := client.RWMutex(lockName)
	return &holdfastLock{actor: a, tryIt: rw.TryLock, await: rw.Lock}, nil
}

// client is one for the servers of the role. It is closed before its connections.
func (a *actor) client() (client *holdfast.Client, err error) {
	config := &holdfast.Config{Label: a.role.Name, TTL: a.role.TTL, MaxTTL: a.role.TTL}
	var servers []store.Store
	for n := range a.role.Addrs {
		servers = append(servers, redisstore.New(a.quiet(n)))
	}
	if len(servers) == 1 {
		client, err = holdfast.New(servers[0], config)
	} else {
		client, err = holdfast.NewQuorum(servers, config)
	}
	if err == nil {
		a.clients = slices.Insert(a.clients, 0, io.Closer(client))
	}
	return client, err
}

func (l *holdfastLock) try(ctx context.Context) (bool, error) {
	lease, err := l.tryIt(ctx)
	var held *holdfast.HeldError
	switch {
	case errors.As(err, &held):
		l.actor.line("TryLock -> held by %s", held.Holder)
		return false, nil
	case errors.Is(err, holdfast.ErrUnavailable):
		l.actor.line("TryLock -> refused: no answer in time")
		return false, nil
	case err != nil:
		return false, err
	}
	l.entered("TryLock", lease)
	return true, nil
}

func (l *holdfastLock) wait(ctx context.Context) error {
	l.actor.line("Lock ...")
	lease, err := l.await(ctx)
	if err != nil {
		return err
	}
	l.entered("Lock", lease)
	return nil
}

func (l *holdfastLock) entered(call string, lease *holdfast.Lease) {
	l.lease = lease
	l.actor.line("%s -> lease with token %d", call, lease.Token())
}

func (l *holdfastLock) release(ctx context.Context) error {
	err := l.lease.Release()
	if err != nil && !errors.Is(err, holdfast.ErrLost) {
		return err
	}
	l.actor.line("Release -> %s", outcomeOf(err))
	return nil
}

// fencedWrite is a storage that remembers the largest token, and refuses a smaller one.
const fencedWrite = `-- write with a token
if tonumber(redis.call('HGET', KEYS[1], 'token') or '0') > tonumber(ARGV[1]) then
  return 0
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'by', ARGV[2])
return 1`

// write sends the token along.
func (l *holdfastLock) write(ctx context.Context) error {
	token := fmt.Sprint(l.lease.Token())
	return l.storage.Eval(ctx, fencedWrite, []string{storageName}, token, l.actor.role.Name).Err()
}

func (l *holdfastLock) token() int64 { return l.lease.Token() }

func (l *holdfastLock) mayWork() error {
	if err := l.lease.Err(); err != nil {
		return errors.New(outcomeOf(err))
	}
	return nil
}

// outcomeOf is an error of a lease without the name of the lock, which is always the same.
func outcomeOf(err error) string {
	var lost *holdfast.LostError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &lost):
		return fmt.Sprintf("the lease is lost, %s", lost.Reason)
	}
	return err.Error()
}
