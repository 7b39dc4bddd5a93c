package lottery

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/redis/go-redis/v9"
)

// A hold is a lease, or what stands in its place when the lottery is drawn without the lock.
type hold interface {
	Context() context.Context
	Err() error
	Token() int64
	Until() time.Time
	Release(ctx context.Context) error
}

// A lock is what a worker waits for.
type lock struct {
	lock  func(ctx context.Context, max time.Duration) (hold, error) // max 0: no longest hold
	close func()
}

// open makes a worker's own client; no worker shares one with another. renewed is called when a lease was renewed.
func open(s setup, renewed func()) (lock, error) {
	if s.Without {
		return lock{
			lock: func(ctx context.Context, _ time.Duration) (hold, error) {
				return none{ctx, time.Now().UnixMicro()}, nil
			},
			close: func() {},
		}, nil
	}
	options, err := server.ParseURL(s.URL)
	if err != nil {
		return lock{}, err
	}
	rdb := redis.NewClient(options)
	client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{
		Label:          fmt.Sprintf("worker %d", s.Worker),
		Observer:       renewals(renewed),
		Prefix:         s.Prefix,
		ReleaseTimeout: 3 * time.Second, // a server that went away must not keep the demo from ending
	})
	if err != nil {
		_ = rdb.Close()
		return lock{}, err
	}
	return lock{
		lock: func(ctx context.Context, max time.Duration) (hold, error) {
			// With a min hold, however short, a hand-over is confirmed for the whole TTL before it is ours. Without, it is trusted
			// for half a second at first, and a machine that stands still for longer would end a hold that is on no trial.
			options := []holdfast.Option{holdfast.WithTTL(s.TTL), holdfast.WithMinHold(time.Microsecond)}
			if max > 0 {
				options = append(options, holdfast.WithMaxHold(max))
			}
			return client.Mutex("lottery", options...).Lock(ctx)
		},
		close: func() { _ = client.Close(); _ = rdb.Close() },
	}, nil
}

// renewals is an observer of nothing else.
type renewals func()

// Observe implements holdfast.Observer.
func (r renewals) Observe(e holdfast.Event) {
	if e.Kind == holdfast.EventRenewed {
		r()
	}
}

// none is held by whoever wants it. Its token is the clock, so that the ledger refuses double draws and nothing else.
type none struct {
	ctx   context.Context
	token int64
}

func (n none) Context() context.Context      { return n.ctx }
func (n none) Err() error                    { return nil }
func (n none) Token() int64                  { return n.token }
func (n none) Until() time.Time              { return time.Time{} }
func (n none) Release(context.Context) error { return nil }
