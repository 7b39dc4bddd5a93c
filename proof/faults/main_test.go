package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	if os.Getenv(childEnv) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // topologies beside each other: most of the time is waiting
	os.Exit(leak.Main(m))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// patience bounds what must happen, on a machine that has much else to do.
const patience = 30 * time.Second

// times is how much of everything is wanted.
func times(t *testing.T) int {
	t.Helper()
	text := os.Getenv("HOLDFAST_FAULTS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("HOLDFAST_FAULTS: %v", err)
	}
	return max(1, n)
}

// long skips what is too long for every day.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("several servers and some time: only with HOLDFAST_PROOF=1")
	}
}

// measured tells whether times themselves are judged: on a machine that has nothing else to do.
func measured() bool { return os.Getenv("HOLDFAST_PROOF") == "1" && !testing.Short() }

func do(t *testing.T, srv *redisserver.Server, args ...any) any {
	t.Helper()
	v, err := srv.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(patience)
	for !holds() {
		select {
		case <-late:
			t.Fatalf("never: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func pause(d time.Duration) { <-time.After(d) }

// every does something again and again until it is stopped, and says how often.
func every(d time.Duration, f func()) (stop func() int) {
	over, done, n := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(done)
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				f()
				n++
			}
		}
	}()
	return func() int { close(over); <-done; return n }
}
