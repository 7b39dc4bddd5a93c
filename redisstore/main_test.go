package redisstore_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/leak"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // go-redis logs every connection that fails, and here many do
	os.Exit(leak.Main(m))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// noLeak fails the test when goroutines are left from here on.
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

// answered is what a request of one try says once the server answers: who stands still for a moment does not, and a node that has just
// come may not be found yet.
func answered(t *testing.T, ask func() error) (err error) {
	t.Helper()
	eventually(t, "an answer", func() bool {
		err = ask()
		return !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrLost)
	})
	return err
}

// checked is what Check says once the server answers.
func checked(t *testing.T, lease *holdfast.Lease) error {
	t.Helper()
	return answered(t, func() error { return lease.Check(t.Context()) })
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
