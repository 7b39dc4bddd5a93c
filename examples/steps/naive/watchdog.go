package naive

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Watchdog is a Unique that is renewed every third of its expiry, as long as its holder lives.
//
// The bug: the watchdog learns of a loss only from an answer of the server. While no answer comes,
// it takes the lock for its own, although the key may have expired long ago.
type Watchdog struct {
	Unique
	lost atomic.Bool
	stop context.CancelFunc
}

// TryLock takes a free lock, and begins to renew it.
func (l *Watchdog) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.Unique.TryLock(ctx)
	if ok {
		ctx, l.stop = context.WithCancel(ctx)
		go l.renew(ctx)
	}
	return ok, err
}

const compareAndExpire = `-- compare and expire
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`

func (l *Watchdog) renew(ctx context.Context) {
	tick := time.NewTicker(l.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		renewed, err := l.rdb.Eval(ctx, compareAndExpire, []string{l.key}, l.id, l.ttl.Milliseconds()).Int()
		if err != nil {
			continue // the network: the next renewal may get through
		}
		if renewed == 0 {
			l.lost.Store(true)
			return
		}
	}
}

// Err tells a holder that its lock is lost.
func (l *Watchdog) Err() error {
	if l.lost.Load() {
		return errors.New("the watchdog found that the lock is lost")
	}
	return nil
}

// Unlock ends the renewals, and deletes the key if it is still that of this process.
func (l *Watchdog) Unlock(ctx context.Context) error {
	l.stop()
	return l.Unique.Unlock(ctx)
}
