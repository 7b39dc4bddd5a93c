package moving

import (
	"context"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"
)

// UnderEtcd runs work under a mutex of etcd's concurrency, as long as its session lives. It returns
// ErrOldLost, joined with the error of work, if the session ended.
func UnderEtcd(ctx context.Context, session *concurrency.Session, name string, work func(context.Context) error) error {
	mutex := concurrency.NewMutex(session, name)
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = mutex.Unlock(ctx) // else it ends with the session
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-session.Done():
			cancel(ErrOldLost)
		case <-ctx.Done():
		}
	}()
	return endedWith(ctx, work(ctx))
}
