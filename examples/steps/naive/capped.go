package naive

import (
	"context"
	"time"
)

// A Capped is a Unique with a watchdog that renews a few times only, so that a process that hangs
// does not keep the lock for ever.
//
// The bug: the watchdog says nothing when it stops. Work that takes longer goes on beside the next
// holder.
type Capped struct {
	Unique
	Renewals int
	stop     context.CancelFunc
}

// TryLock takes a free lock, and begins to renew it.
func (l *Capped) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.Unique.TryLock(ctx)
	if ok {
		ctx, l.stop = context.WithCancel(ctx)
		go l.renew(ctx)
	}
	return ok, err
}

func (l *Capped) renew(ctx context.Context) {
	for range l.Renewals {
		select {
		case <-time.After(l.ttl / 3):
		case <-ctx.Done():
			return
		}
		_ = l.rdb.Eval(ctx, compareAndExpire, []string{l.key}, l.id, l.ttl.Milliseconds()).Err()
	}
}

// Unlock ends the renewals, and deletes the key if it is still that of this process.
func (l *Capped) Unlock(ctx context.Context) error {
	l.stop()
	return l.Unique.Unlock(ctx)
}
