package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // go-redis logs every connection that fails, and here many do
	before := goroutines()
	code := m.Run()
	if code == 0 {
		if left := leaked(before); left != "" {
			fmt.Fprintf(os.Stderr, "goroutines left behind:\n\n%s\n", left)
			code = 1
		}
	}
	os.Exit(code)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// goroutines is the stack of each goroutine by its first words, "goroutine 17".
func goroutines() map[string]string {
	buf := make([]byte, 4<<20)
	all := map[string]string{}
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		all[id] = stack
	}
	return all
}

// leaked returns the stacks of goroutines that were not there before and do not end within some seconds.
func leaked(before map[string]string) string {
	deadline := time.After(5 * time.Second)
	for {
		var left []string
		for id, stack := range goroutines() {
			if before[id] == "" && !strings.Contains(stack, "redisstore_test.goroutines") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return ""
		}
		select {
		case <-deadline:
			return strings.Join(left, "\n\n")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// noLeak fails the test when goroutines are left from here on.
func noLeak(t *testing.T) (check func()) {
	before := goroutines()
	return func() {
		t.Helper()
		if left := leaked(before); left != "" {
			t.Errorf("goroutines left behind:\n\n%s", left)
		}
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(15 * time.Second)
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

func request(args ...any) []holdfast.Request { return []holdfast.Request{{Args: args}} }
