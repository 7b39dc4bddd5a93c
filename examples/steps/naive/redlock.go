package naive

import (
	"context"
	"errors"
)

// A RedLock is a Unique on several masters that know nothing of each other. A process that gets the
// key at most of them holds the lock.
//
// The bug: the majority is counted without a look at the time. If the masters answer late, the
// first keys have expired by then, and another process has them.
type RedLock struct{ masters []Unique }

// NewRedLock makes the lock of one process, from its keys at the masters.
func NewRedLock(keys ...Key) (l RedLock) {
	for _, key := range keys {
		l.masters = append(l.masters, Unique{Key: key})
	}
	return l
}

// TryLock asks one master after the other, and counts.
func (l RedLock) TryLock(ctx context.Context) (bool, error) {
	granted := 0
	for _, master := range l.masters {
		if ok, err := master.TryLock(ctx); err == nil && ok {
			granted++
		}
	}
	if granted > len(l.masters)/2 {
		return true, nil
	}
	return false, l.Unlock(ctx)
}

// Unlock gives back what this process has at any master.
func (l RedLock) Unlock(ctx context.Context) error {
	var errs []error
	for _, master := range l.masters {
		errs = append(errs, master.Unlock(ctx))
	}
	return errors.Join(errs...)
}
