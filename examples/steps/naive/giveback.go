package naive

import (
	"context"
	"errors"
)

// A GiveBack is a RedLock that gives back at the masters that granted, and not at the others.
//
// The bug: a master may have granted, and its answer was lost. The key stays there until it
// expires, although nobody holds the lock.
type GiveBack struct{ masters, granted []Unique }

// NewGiveBack makes the lock of one process, from its keys at the masters.
func NewGiveBack(keys ...Key) *GiveBack { return &GiveBack{masters: NewRedLock(keys...).masters} }

// TryLock asks one master after the other, and counts.
func (l *GiveBack) TryLock(ctx context.Context) (bool, error) {
	l.granted = nil
	for _, master := range l.masters {
		if ok, err := master.TryLock(ctx); err == nil && ok {
			l.granted = append(l.granted, master)
		}
	}
	if len(l.granted) > len(l.masters)/2 {
		return true, nil
	}
	return false, l.Unlock(ctx)
}

// Unlock gives back what was granted.
func (l *GiveBack) Unlock(ctx context.Context) error {
	var errs []error
	for _, master := range l.granted {
		errs = append(errs, master.Unlock(ctx))
	}
	return errors.Join(errs...)
}
