// Command first bills an order. Start it twice at once: the second process waits until the first is
// done. Of four at once, not all get their turn: each waits for 10 s at most, and a bill takes 5 s.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil { // it returns when the work has ended and the client is closed
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		// The error of ParseURL may show the password.
		return errors.New("REDIS_URL must look like redis://USER:PASSWORD@HOST:PORT/DB")
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	client, err := holdfast.New(redisstore.New(rdb), nil) // rdb is your *redis.Client
	if err != nil {
		return err
	}
	defer client.Close()

	// WithWait bounds the waiting alone. A deadline of ctx would cut the work too.
	order := client.Mutex("order:42", holdfast.WithWait(10*time.Second))
	return order.Do(ctx, func(ctx context.Context) error {
		if err := bill(ctx, 42); err != nil { // nobody else bills order 42 now
			return err
		}
		lease, _ := holdfast.LeaseFrom(ctx)
		return save(ctx, 42, lease.Token())
	})
}

// bill runs in one process at a time. Its context ends early if the lock is lost, or on Ctrl-C
// and TERM.
func bill(ctx context.Context, order int) error {
	fmt.Println("billing order", order, "...")
	select {
	case <-time.After(5 * time.Second): // the work
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// save stands for storage that remembers the largest token of an order and refuses a smaller one.
// This is enough if the lock guards one row; docs/fencing.md has more:
//
//	UPDATE orders SET state = 'billed', token = $2 WHERE id = $1 AND token <= $2
func save(_ context.Context, order int, token int64) error {
	fmt.Println("saved order", order, "with token", token)
	return nil
}
