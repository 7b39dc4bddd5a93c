package examples_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// The code of docs/moving.md for a move to another server.

func onBoth(ctx context.Context, before, after *holdfast.Client, work func(context.Context) error) error {
	return before.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		return after.Mutex("order:42").Do(ctx, work)
	})
}

func largestToken(ctx context.Context) (token int64) {
	for lease := range holdfast.LeasesFrom(ctx) { // of both servers
		token = max(token, lease.Token())
	}
	return token
}

// A release locks on one server, or on both.
type release func(ctx context.Context, before, after *holdfast.Client, work func(context.Context) error) error

func onlyBefore(ctx context.Context, before, _ *holdfast.Client, work func(context.Context) error) error {
	return before.Mutex("order:42").Do(ctx, work)
}

func onlyAfter(ctx context.Context, _, after *holdfast.Client, work func(context.Context) error) error {
	return after.Mutex("order:42").Do(ctx, work)
}

// connect makes a client that stands for a process, on a server of which the test is the starter.
func connect(t *testing.T, server *redisserver.Server) *holdfast.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{TTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); rdb.Close() })
	return client
}

// Releases that are neighbours exclude each other while processes are replaced, and the tokens
// grow. The counter-test is that of releases which are no neighbours.
func TestNeighboursExcludeEachOtherOnTwoServers(t *testing.T) {
	for name, test := range map[string]struct {
		releases []release
		apart    bool
	}{
		"N-1 and N":   {[]release{onlyBefore, onBoth}, true},
		"N and N+1":   {[]release{onBoth, onlyAfter}, true},
		"N-1 and N+1": {[]release{onlyBefore, onlyAfter}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := redisserver.Start(t), redisserver.Start(t)
			var inside, overlaps, last atomic.Int64
			var all sync.WaitGroup
			for i := range 6 {
				run := test.releases[i%2]
				first, second := connect(t, before), connect(t, after)
				all.Go(func() {
					for range 20 {
						if err := run(t.Context(), first, second, func(ctx context.Context) error {
							if inside.Add(1) > 1 {
								overlaps.Add(1)
							}
							token := largestToken(ctx)
							if largest := last.Swap(token); test.apart && token <= largest {
								t.Errorf("token %d after %d", token, largest)
							}
							<-time.After(time.Millisecond)
							inside.Add(-1)
							return nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if n := overlaps.Load(); (n == 0) != test.apart {
				t.Errorf("two were inside %d times", n)
			}
		})
	}
}
