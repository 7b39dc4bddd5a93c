package moving

import (
	"context"
	"errors"
	"time"
)

// ErrOldLost is the cause with which the context of work ends when the old lock is lost.
var ErrOldLost = errors.New("the old lock was lost")

// whileRenewed runs work while renew prolongs the old lock, each time by ttl from then on. A renew
// that fails is tried again as long as there is time. Work ends when a tenth of the TTL is left, or
// when renew says ErrOldLost.
func whileRenewed(ctx context.Context, ttl time.Duration, renew, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	trust := ttl - ttl/10
	over := time.AfterFunc(trust, func() { cancel(ErrOldLost) })
	again := func() error {
		sent := time.Now()
		err := renew(ctx)
		if err == nil {
			over.Reset(time.Until(sent.Add(trust)))
		}
		return err
	}
	if err := again(); err != nil { // the lock may be old: only this says until when it lives
		over.Stop()
		cancel(nil)
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(ttl / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := again(); errors.Is(err, ErrOldLost) {
					cancel(err)
				}
			}
		}
	}()
	defer func() { // nothing renews the lock after this
		cancel(nil)
		<-ended
		over.Stop()
	}()
	return endedWith(ctx, work(ctx))
}

// endedWith adds to the error of work that the old lock was lost.
func endedWith(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrOldLost) && !errors.Is(err, ErrOldLost) {
		return errors.Join(err, ErrOldLost)
	}
	return err
}
