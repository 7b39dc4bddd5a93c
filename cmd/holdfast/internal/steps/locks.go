package steps

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/steps/naive"
)

// A lock is what a process uses: a naive one, or that of holdfast.
type lock interface {
	try(context.Context) (bool, error)
	wait(context.Context) error
	release(context.Context) error
	write(context.Context) error
	token() int64   // of the hold; 0: there is none
	mayWork() error // why the holder must not work on; nil: it may, as far as it knows
}

// locks has the locks by the names of roles.
var locks = map[string]func(*actor) (lock, error){
	"timestamp": func(a *actor) (lock, error) {
		clock := func() time.Time { return time.Now().Add(a.role.Clock) }
		return a.naive(naive.NewTimestamp(a.redis(0), lockName, ttl, clock)), nil
	},
	"expire": func(a *actor) (lock, error) {
		return a.naive(naive.NewExpire(a.redis(0), lockName, ttl)), nil
	},
	"delete": func(a *actor) (lock, error) {
		return a.naive(naive.NewDelete(a.redis(0), lockName, ttl)), nil
	},

	"holdfast":       func(a *actor) (lock, error) { return a.holdfast() },
	"holdfast fixed": func(a *actor) (lock, error) { return a.holdfast(holdfast.WithoutRenewal()) },
}
