package integrations_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast"
)

// oneTaskAtATime is a middleware for asynq. While another task of the same customer runs, on any
// host, it gives the task back, so that no worker waits.
func oneTaskAtATime(client *holdfast.Client) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			lease, err := client.Mutex("customer:" + string(task.Payload())).TryLock(ctx)
			if err != nil {
				return err
			}
			defer lease.Release()
			ctx, cancel := lease.Bind(ctx)
			defer cancel()
			return next.ProcessTask(ctx, task)
		})
	}
}

// asynq runs tasks on many hosts. The tasks of one customer run one at a time. A task that finds
// another one running, or no Redis, is tried again, and that is no failure of the task.
func Example_asynq() {
	addr, client, end := connect()
	defer end()

	var running, most atomic.Int64
	done := make(chan struct{})
	mux := asynq.NewServeMux()
	mux.Use(oneTaskAtATime(client))
	mux.HandleFunc("invoice", func(context.Context, *asynq.Task) error {
		most.Store(max(most.Load(), running.Add(1)))
		<-time.After(20 * time.Millisecond) // the work
		running.Add(-1)
		done <- struct{}{}
		return nil
	})
	later := func(err error) bool {
		return errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUnavailable)
	}
	worker := asynq.NewServer(asynq.RedisClientOpt{Addr: addr}, asynq.Config{
		Concurrency: 10,
		IsFailure:   func(err error) bool { return !later(err) },
		RetryDelayFunc: func(n int, err error, task *asynq.Task) time.Duration {
			if later(err) {
				return time.Second
			}
			return asynq.DefaultRetryDelayFunc(n, err, task)
		},
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		LogLevel:                 asynq.FatalLevel,
	})
	if err := worker.Start(mux); err != nil {
		log.Fatal(err)
	}
	queue := asynq.NewClient(asynq.RedisClientOpt{Addr: addr})
	for range 3 {
		if _, err := queue.Enqueue(asynq.NewTask("invoice", []byte("42"))); err != nil {
			log.Fatal(err)
		}
	}
	for range 3 {
		<-done
	}
	worker.Shutdown()
	queue.Close()
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: addr})
	defer inspector.Close()
	info, err := inspector.GetQueueInfo("default")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("3 tasks ran, at most", most.Load(), "at a time;", info.FailedTotal, "failed")
	// Output: 3 tasks ran, at most 1 at a time; 0 failed
}
