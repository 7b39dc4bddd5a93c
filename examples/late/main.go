// Command late shows what a fencing token is for. A holder stands still until its lock is over. The
// next holder writes. Then the first goes on, and Redis refuses its write, because its token is
// late:
//
//	go run ./cmd/holdfast dev   # or any Redis; REDIS_URL names another than localhost:6379
//	go run ./examples/late
//
// The lock and the data lie on one server here. They may lie on two: docs/fencing.md has databases.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/redisstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, url string) error {
	options, err := redis.ParseURL(url)
	if err != nil {
		// The error of ParseURL may show the password.
		return errors.New("REDIS_URL must look like redis://USER:PASSWORD@HOST:PORT/DB")
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()

	// Two clients stand for two processes.
	slow, err := holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		return err
	}
	defer slow.Close()
	next, err := holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		return err
	}
	defer next.Close()

	// A process that stands still renews nothing.
	first, err := slow.Mutex("order:42", holdfast.WithoutRenewal(), holdfast.WithTTL(time.Second)).Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = first.Release() }() // it was lost long ago
	fmt.Fprintf(out, "the first holder has token %d, and stands still\n", first.Token())

	second, err := next.Mutex("order:42").Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = second.Release() }()
	if err := save(ctx, rdb, second, "billed"); err != nil {
		return err
	}
	fmt.Fprintf(out, "the second holder has token %d, and wrote \"billed\"\n", second.Token())

	err = save(ctx, rdb, first, "open")
	if !errors.Is(err, fence.ErrLate) {
		return fmt.Errorf("the late write was not refused: %w", err)
	}
	fmt.Fprintln(out, "the first holder goes on, and is refused:", err)
	return nil
}

// save writes the state of the order, unless a later holder wrote or read it through the fence.
func save(ctx context.Context, rdb *redis.Client, lease *holdfast.Lease, state string) error {
	keys := []string{"{order:42}:fence", "{order:42}"}
	err := redis.NewScript(fence.RedisScript).Run(ctx, rdb, keys, lease.Token(), "SET", state).Err()
	return fence.RedisError(err, lease.Name(), lease.Token())
}
