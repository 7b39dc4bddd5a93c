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
	Release(ctx context.Context) error
}

// A lock is what a worker waits for.
type lock struct {
	lock  func(context.Context) (hold, error)
	close func()
}

// open makes a worker's own client; no worker shares one with another.
func open(s setup) (lock, error) {
	if s.Without {
		return lock{
			lock:  func(ctx context.Context) (hold, error) { return none{ctx, time.Now().UnixMicro()}, nil },
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
		Prefix:         s.Prefix,
		ReleaseTimeout: time.Second, // a server that went away must not keep the demo from ending
	})
	if err != nil {
		_ = rdb.Close()
		return lock{}, err
	}
	mutex := client.Mutex("lottery", holdfast.WithTTL(s.TTL))
	return lock{
		lock:  func(ctx context.Context) (hold, error) { return mutex.Lock(ctx) },
		close: func() { _ = client.Close(); _ = rdb.Close() },
	}, nil
}

// none is held by whoever wants it. Its token is the clock, so that the ledger refuses double draws and nothing else.
type none struct {
	ctx   context.Context
	token int64
}

func (n none) Context() context.Context      { return n.ctx }
func (n none) Err() error                    { return nil }
func (n none) Token() int64                  { return n.token }
func (n none) Release(context.Context) error { return nil }
