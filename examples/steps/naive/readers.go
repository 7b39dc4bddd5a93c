package naive

import (
	"context"
	"time"
)

// A Readers is a ReadWrite with a watchdog for each holder.
//
// The bug: the readers have one expiry. While the watchdog of one reader renews it, a reader that
// crashed stays in, and the writer stays out.
type Readers struct {
	ReadWrite
	stop context.CancelFunc
}

// TryLock takes the lock as ReadWrite does, and begins to renew it.
func (l *Readers) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.ReadWrite.TryLock(ctx)
	if ok {
		ctx, l.stop = context.WithCancel(ctx)
		go l.renew(ctx)
	}
	return ok, err
}

const renewForAll = `-- renew
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`

func (l *Readers) renew(ctx context.Context) {
	for {
		select {
		case <-time.After(l.ttl / 3):
		case <-ctx.Done():
			return
		}
		_ = l.rdb.Eval(ctx, renewForAll, []string{l.key}, l.id, l.ttl.Milliseconds()).Err()
	}
}

// Unlock ends the renewals, and takes this process out.
func (l *Readers) Unlock(ctx context.Context) error {
	l.stop()
	return l.ReadWrite.Unlock(ctx)
}
