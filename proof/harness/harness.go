package harness

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/eventually"
)

// Patience bounds what must happen, on a machine that has much else to do, and stands still at
// times.
const Patience = 30 * time.Second

// Thorough tells that long tests and long counts are wanted.
var Thorough = os.Getenv("HOLDFAST_PROOF") == "1"

// Measured reports whether a test may judge how long something took: in make proof, where nothing
// else runs. Long tests that run beside others have -short.
func Measured() bool { return Thorough && !testing.Short() }

// Long skips a test that takes long, unless it is wanted.
func Long(t *testing.T) {
	t.Helper()
	if !Thorough {
		t.Skip("it takes long: HOLDFAST_PROOF=1 runs it")
	}
}

// Number returns the value of an environment variable, or otherwise if it is empty.
func Number(t *testing.T, env string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return n
}

// Quiet silences the log of go-redis. It logs every connection that fails, and here many do.
func Quiet() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Eventually waits until the condition holds.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventually.Must(t, Patience, what, holds)
}

// Signalled waits until a channel is closed.
func Signalled(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(Patience):
		t.Fatalf("never: %s", what)
	}
}

// Within returns a context that ends with the test, or after d.
func Within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// A Dice draws decisions.
type Dice struct{ *rand.Rand }

// Percent returns true in n of 100 draws.
func (d Dice) Percent(n int) bool { return d.IntN(100) < n }

// Between draws a duration.
func (d Dice) Between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.Int64N(int64(to-from)+1))
}

// Short draws a duration of which most are much nearer to from than to to.
func (d Dice) Short(from, to time.Duration) time.Duration {
	x := d.Float64()
	return from + time.Duration(x*x*x*float64(to-from))
}
