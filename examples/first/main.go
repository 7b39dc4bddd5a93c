// Command first bills an order. Start it twice at once: the second process waits until the first is
// done.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/redis/go-redis/v9"
)

func main() {
	if err := run(context.Background()); err != nil {
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
	client, err := holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		return err
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // for waiting and working together
	defer cancel()
	return client.Mutex("order:42").Do(ctx, bill)
}

// bill runs in one process at a time. Its context ends early if the lock is lost.
func bill(ctx context.Context) error {
	fmt.Println("billing order 42 ...")
	select {
	case <-time.After(5 * time.Second): // the work
		fmt.Println("billed")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
