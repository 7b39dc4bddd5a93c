package naive

import (
	"context"
	"time"
)

// A Herd is a Unique that tells its waiters when it is free. They subscribe to a channel, and try
// again at each message.
//
// The bug: a message wakes all waiters, and all but one of them try for nothing.
type Herd struct{ Unique }

// Lock waits until it gets in.
func (l Herd) Lock(ctx context.Context) error {
	channel := l.rdb.Subscribe(ctx, l.key+":free")
	defer channel.Close()
	if _, err := channel.Receive(ctx); err != nil { // else the lock could be given back unheard
		return err
	}
	for {
		if ok, err := l.TryLock(ctx); ok || err != nil {
			return err
		}
		select {
		case <-channel.Channel():
		case <-time.After(10 * l.ttl): // a message may be lost
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const deleteAndTell = `-- compare, delete and tell
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('PUBLISH', KEYS[1] .. ':free', 'free')
  return redis.call('DEL', KEYS[1])
end
return 0`

// Unlock deletes the key if it is still that of this process, and tells all waiters.
func (l Herd) Unlock(ctx context.Context) error {
	return l.rdb.Eval(ctx, deleteAndTell, []string{l.key}, l.id).Err()
}
