package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// tracking is github.com/redis/rueidis/rueidislock on one key instead of its default of three. It
// waits for the server's word that the key has changed, which all waiters get at once.
type tracking struct{ locker rueidislock.Locker }

func openRueidislock(t target) (Contender, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{t.addr}},
		KeyMajority:  1,
		KeyValidity:  ttl,
		// With the default of 20 ms, an attempt that times out on a busy machine may wait for ever.
		TryNextAfter: time.Second,
		// It is faster, and its documentation asks for that version.
		NoLoopTracking: atLeast(t.version, 7, 0, 5),
	})
	if err != nil {
		return nil, err
	}
	return tracking{locker}, nil
}

func (t tracking) Lock(ctx context.Context, name string) (func() error, error) {
	_, cancel, err := t.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error {
		cancel()
		return nil
	}, nil
}

func (t tracking) Close() error {
	t.locker.Close()
	return nil
}
