package redisstore_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/redisstore"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // go-redis logs every connection that fails, and here many do
	os.Exit(leak.Main(m))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// patience bounds what must happen, on a machine that has much else to do, and stands still at
// times.
const patience = 30 * time.Second

// long skips a test that takes long or judges how long something took.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("it takes long: HOLDFAST_PROOF=1 runs it")
	}
}

// noLeak returns a check that fails the test when goroutines are left that were not there before.
func noLeak(t *testing.T) (check func()) {
	left := leak.Watch()
	return func() {
		t.Helper()
		if left := left(); left != "" {
			t.Errorf("goroutines left behind:\n\n%s", left)
		}
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func client(t *testing.T, srv *redisserver.Server, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	opt := &redis.Options{Addr: srv.Addr()}
	for _, change := range opts {
		change(opt)
	}
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// within is a context that ends with the test, or after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func request(args ...any) []wire.Request { return []wire.Request{{Args: args}} }

// routed is what holdfast makes of the store on a client.
func routed(rdb redis.UniversalClient) wire.Store { return wire.Route(redisstore.New(rdb)) }
