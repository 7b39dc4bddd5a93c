package examples_test

// The imports of docs/shards.md, word for word; those below are of the tests.
import (
	"context"
	"errors"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/shard"
)

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// The code of docs/shards.md, word for word.

func work(ctx context.Context, rdb *redis.Client) error {
	client, err := holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		return err
	}
	defer client.Close()
	set := shard.New(client, "orders", 16)
	err = set.Run(ctx, func(ctx context.Context, i int) error { // once for each shard held here
		log.Println("shard", i, "begins")
		<-ctx.Done() // its work goes here, until ctx ends
		log.Println("shard", i, "ends:", context.Cause(ctx))
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) { // else the process was told to stop
		return err
	}
	return nil
}

func consumeOrders(ctx context.Context, client *holdfast.Client, rdb *redis.Client,
	handle func(ctx context.Context, order string) error) error {
	return shard.New(client, "orders", 16).Run(ctx, func(ctx context.Context, i int) error {
		lease, _ := holdfast.LeaseFrom(ctx)
		stream := fmt.Sprintf("{orders:%d}", i)
		keys := []string{stream + ":fence", stream + ":position"}
		for {
			position, err := rdb.Get(ctx, keys[1]).Result()
			if errors.Is(err, redis.Nil) {
				position, err = "0", nil
			}
			if err != nil {
				return err
			}
			found, err := rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{stream, position}, Count: 1,
				Block: time.Second}).Result()
			if errors.Is(err, redis.Nil) {
				continue // nothing came
			}
			if err != nil {
				return err
			}
			entry := found[0].Messages[0]
			if err := handle(ctx, fmt.Sprint(entry.Values["order"])); err != nil {
				return err
			}
			// A process that stood still is refused here.
			err = redis.NewScript(fence.RedisScript).Run(ctx, rdb, keys, lease.Token(), "SET", entry.ID).Err()
			if err != nil {
				return fence.RedisError(err, lease.Name(), lease.Token())
			}
		}
	})
}

func serveTenants(ctx context.Context, set *shard.Set, tenants func(context.Context) ([]string, error),
	serve func(ctx context.Context, tenant string) error) error {
	return set.Run(ctx, func(ctx context.Context, i int) error {
		for {
			all, err := tenants(ctx)
			if err != nil {
				return err
			}
			for _, tenant := range all {
				if set.Of(tenant) != i {
					continue
				}
				if err := serve(ctx, tenant); err != nil {
					return err
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Second):
			}
		}
	})
}

func addressOf(ctx context.Context, set *shard.Set, tenant string) (string, error) {
	hold, err := set.Owner(ctx, set.Of(tenant))
	return hold.Label, err // shard.ErrNoOwner: it is on its way from one process to another
}

func everyPeriod(ctx context.Context, client *holdfast.Client, period time.Duration,
	job func(ctx context.Context, i int, at time.Time) error) error {
	return shard.New(client, "cleanup", 8).Run(ctx, func(ctx context.Context, i int) error {
		for {
			at := time.Now().Truncate(period).Add(period)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Until(at)):
			}
			if err := job(ctx, i, at); err != nil {
				return err
			}
		}
	})
}

// onHosts calls run on three hosts, and ends them when it is done.
func onHosts(t *testing.T, done <-chan struct{},
	run func(ctx context.Context, host int, client *holdfast.Client, rdb *redis.Client) error) {
	t.Helper()
	server := redisserver.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for host := range 3 {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		client, err := holdfast.New(redisstore.New(rdb), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		all.Go(func() {
			if err := run(ctx, host, client, rdb); !errors.Is(err, context.Canceled) {
				t.Errorf("host %d: %v", host, err)
			}
		})
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	cancel()
	all.Wait()
}

// A sheet is a list of lines that several hosts write, until it has so many that differ.
type sheet struct {
	mu    sync.Mutex
	lines []string
	want  int
	done  chan struct{}
}

func newSheet(want int) *sheet { return &sheet{want: want, done: make(chan struct{})} }

func (s *sheet) write(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.lines, line) {
		return
	}
	if s.lines = append(s.lines, line); len(s.lines) == s.want {
		close(s.done)
	}
}

func TestShardsWork(t *testing.T) {
	server := redisserver.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- work(ctx, rdb) }()
	client, err := holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for holds, err := range shard.New(client, "orders", 16).Watch(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(holds, func(hold lockinfo.Hold) bool { return hold.Token == 0 }) {
			break // all of them are held
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v", err)
	}
}

// Each order of each stream is handled, whichever host has the stream. A position is not moved by
// one whose lease is over.
func TestShardsConsumeOrders(t *testing.T) {
	orders := newSheet(48)
	var first sync.Once
	onHosts(t, orders.done, func(ctx context.Context, _ int, client *holdfast.Client, rdb *redis.Client) error {
		first.Do(func() {
			for i := range 48 {
				order := []string{"order", fmt.Sprint(i)}
				rdb.XAdd(ctx, &redis.XAddArgs{Stream: fmt.Sprintf("{orders:%d}", i%16), Values: order})
			}
		})
		return consumeOrders(ctx, client, rdb, func(_ context.Context, order string) error {
			orders.write(order)
			return nil
		})
	})
	if len(orders.lines) != 48 {
		t.Errorf("got %q", orders.lines)
	}
}

func TestShardsServeTenants(t *testing.T) {
	served := newSheet(4)
	onHosts(t, served.done, func(ctx context.Context, host int, client *holdfast.Client, _ *redis.Client) error {
		label := fmt.Sprint("10.0.0.", host)
		set := shard.New(client, "tenants", 64, shard.WithLock(holdfast.WithLabel(label)))
		return serveTenants(ctx, set, func(context.Context) ([]string, error) {
			return []string{"ada", "bob", "cid", "dan"}, nil
		}, func(ctx context.Context, tenant string) error {
			address, err := addressOf(ctx, set, tenant)
			if address == label && err == nil {
				served.write(tenant)
			}
			return nil
		})
	})
	if len(served.lines) != 4 {
		t.Errorf("got %q", served.lines)
	}
}

func TestShardsEveryPeriod(t *testing.T) {
	runs := newSheet(8)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-runs.done
		cancel()
	}()
	client, period := holdfasttest.New(t), 10*time.Millisecond
	err := everyPeriod(ctx, client, period, func(_ context.Context, i int, _ time.Time) error {
		runs.write(fmt.Sprint(i))
		return nil
	})
	if len(runs.lines) != 8 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v", runs.lines, err)
	}
}
