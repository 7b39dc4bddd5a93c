package moving

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

const ttl = 8 * time.Second

var errNoAnswer = errors.New("no answer")

// untilCut is work that lasts until its context ends, or for an hour.
func untilCut(ctx context.Context) error {
	select {
	case <-time.After(time.Hour):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Work ends before the old lock can: a tenth of the TTL before the end of what the last renewal
// that succeeded has given.
func TestWhileRenewedEndsBeforeTheLock(t *testing.T) {
	for name, test := range map[string]struct {
		renew func(ctx context.Context, n int) error
		ends  time.Duration
		want  error
	}{
		"no answer after the first": {
			func(_ context.Context, n int) error { return map[bool]error{true: errNoAnswer}[n > 1] }, ttl * 9 / 10,
			ErrOldLost},
		"no answer after the fourth": {
			func(_ context.Context, n int) error { return map[bool]error{true: errNoAnswer}[n > 4] },
			3*ttl/4 + ttl*9/10, ErrOldLost},
		"the second hangs, and ignores its context": {func(_ context.Context, n int) error {
			if n > 1 {
				<-time.After(ttl)
			}
			return nil
		}, ttl * 9 / 10, ErrOldLost},
		"an answer that is late": {func(_ context.Context, n int) error {
			<-time.After(ttl / 8) // what was sent before counts, not what came
			return map[bool]error{true: errNoAnswer}[n > 1]
		}, ttl * 9 / 10, ErrOldLost},
		"lost": {
			func(_ context.Context, n int) error { return map[bool]error{true: ErrOldLost}[n > 3] }, 3 * ttl / 4,
			ErrOldLost},
		"the first without answer": {func(context.Context, int) error { return errNoAnswer }, 0, errNoAnswer},
		"renewed":                  {func(context.Context, int) error { return nil }, time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, n, ended := time.Now(), 0, time.Duration(0)
				err := whileRenewed(t.Context(), ttl, func(ctx context.Context) error {
					n++
					return test.renew(ctx, n)
				}, func(ctx context.Context) error {
					err := untilCut(ctx)
					ended = time.Since(began)
					return err
				})
				if !errors.Is(err, test.want) || ended != test.ends {
					t.Errorf("work ended after %v, expected %v: %v", ended, test.ends, err)
				}
				before := n
				<-time.After(ttl)
				if n != before {
					t.Error("the lock was renewed after it was given back")
				}
			})
		})
	}
}

// Work that does not look at its context is told afterwards.
func TestWhileRenewedTellsWorkThatWasLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := whileRenewed(t.Context(), ttl, func(context.Context) error {
			if n++; n > 1 {
				return errNoAnswer
			}
			return nil
		}, func(context.Context) error { <-time.After(2 * ttl); return nil })
		if !errors.Is(err, ErrOldLost) {
			t.Errorf("got %v", err)
		}
	})
}
