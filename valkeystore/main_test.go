// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/valkeystore"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

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
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// client makes a client of the server at an address.
func client(t testing.TB, addr string, opts ...func(*valkey.ClientOption)) valkey.Client {
	t.Helper()
	opt := valkey.ClientOption{InitAddress: []string{addr}}
	for _, change := range opts {
		change(&opt)
	}
	rdb, err := valkey.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rdb.Close)
	return rdb
}

// protocols are the ways in which the client can speak with a server.
var protocols = map[string]func(*valkey.ClientOption){
	"RESP2": func(o *valkey.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true },
	"RESP3": func(*valkey.ClientOption) {},
}

// within is a context that ends with the test, or after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func request(args ...any) []wire.Request { return []wire.Request{{Args: args}} }

func do(t *testing.T, srv *redisserver.Server, args ...any) any {
	t.Helper()
	v, err := srv.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args[:2], err)
	}
	return v
}

// routed is what holdfast makes of the store on a client.
func routed(rdb valkey.Client) wire.Store { return wire.Route(valkeystore.New(rdb)) }
