package holdfasttest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// both runs a test on the real clock and in a bubble.
func both(t *testing.T, run func(t *testing.T)) {
	t.Run("real time", run)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, run) })
}

// inBubble reports whether the clock is that of a bubble, which begins in the year 2000 and stands
// still while anybody works.
func inBubble() bool { return time.Now().Year() < 2010 }

func lock(t *testing.T, m *holdfast.Mutex) *holdfast.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	lease, err := m.Lock(ctx)
	fatal.If(t, err)
	return lease
}

func lost(t *testing.T, err error, reason holdfast.Reason) {
	t.Helper()
	var lost *holdfast.LostError
	if !errors.As(err, &lost) || lost.Reason != reason {
		t.Fatalf("got %v, want a loss because %s", err, reason)
	}
}

func TestNew(t *testing.T) {
	both(t, func(t *testing.T) {
		one, other := holdfasttest.New(t), holdfasttest.New(t)
		lease := lock(t, one.Mutex("order:42"))
		if _, err := one.Mutex("order:42").TryLock(t.Context()); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("got %v", err)
		}
		lock(t, other.Mutex("order:42")) // another server
		fatal.If(t, lease.Release())
	})
}

func TestLose(t *testing.T) {
	for _, name := range []string{"order:42", "a{b}c", "}%7D", "\x00\xff\n"} {
		both(t, func(t *testing.T) {
			server := holdfasttest.Start(t)
			one, other := server.Client(nil), server.Client(&holdfast.Config{Prefix: "other"})
			lease, untouched := lock(t, one.Mutex(name)), lock(t, one.Mutex(name+"."))
			elsewhere := lock(t, other.Mutex("x"))
			ctx := leased.Context(lease)
			server.Lose(lease)
			<-ctx.Done()
			lost(t, context.Cause(ctx), holdfast.LossGone)
			for _, lease := range []*holdfast.Lease{untouched, elsewhere, lock(t, other.Mutex(name))} {
				fatal.If(t, lease.Check(t.Context()))
			}
		})
	}
}

// Every way of holding something can be lost, also with others who hold it too.
func TestLoseEveryKind(t *testing.T) {
	for name, take := range map[string]func(context.Context, *holdfast.Client) (*holdfast.Lease, error){
		"group": func(ctx context.Context, c *holdfast.Client) (*holdfast.Lease, error) {
			return c.All([]string{"x", "y"}).Lock(ctx)
		},
		"writer": func(ctx context.Context, c *holdfast.Client) (*holdfast.Lease, error) {
			return c.RWMutex("x").Lock(ctx)
		},
		"reader": func(ctx context.Context, c *holdfast.Client) (*holdfast.Lease, error) {
			return c.RWMutex("x").RLock(ctx)
		},
		"semaphore": func(ctx context.Context, c *holdfast.Client) (*holdfast.Lease, error) {
			return c.Semaphore("x", 2).Acquire(ctx, 1)
		},
		"election": func(ctx context.Context, c *holdfast.Client) (*holdfast.Lease, error) {
			return c.Election("x").Campaign(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T) {
				server := holdfasttest.Start(t)
				one, other := server.Client(nil), server.Client(nil)
				lease, err := take(t.Context(), one)
				fatal.If(t, err)
				server.Lose(lease)
				lost(t, context.Cause(leased.Context(lease)), holdfast.LossGone)
				lost(t, lease.Release(), holdfast.LossGone)
				next, err := take(t.Context(), other)
				fatal.If(t, err)
				fatal.If(t, next.Release())
			})
		})
	}
}

// The next who waits is in at once: in a bubble, within the time that connecting again takes.
func TestLoseHandsOn(t *testing.T) {
	both(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		one, other := server.Client(nil), server.Client(nil)
		lease := lock(t, one.Mutex("order:42"))
		waiting := make(chan error, 1)
		go func() {
			next, err := other.Mutex("order:42").Lock(t.Context())
			if err == nil {
				err = next.Check(t.Context())
			}
			waiting <- err
		}()
		for {
			var held *holdfast.HeldError
			if _, err := one.Mutex("order:42").TryLock(t.Context()); errors.As(err, &held) && held.Waiters > 0 {
				break
			}
			<-time.After(time.Millisecond)
		}
		began := time.Now()
		server.Lose(lease)
		fatal.If(t, <-waiting)
		if took := time.Since(began); took > 3*time.Second && inBubble() {
			t.Errorf("the next was in after %v", took)
		}
	})
}

// A machine that stands still for longer than a request lasts is no reason to fail.
func TestLoseAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		lease := lock(t, server.Client(nil).Mutex("order:42"))
		server.Slow(2 * time.Second)
		time.AfterFunc(1500*time.Millisecond, func() { server.Slow(0) })
		server.Lose(lease)
		lost(t, context.Cause(leased.Context(lease)), holdfast.LossGone)
	})
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		client := server.Client(nil)
		lease := lock(t, client.Mutex("order:42"))
		<-time.After(time.Hour)
		fatal.If(t, lease.Err())
		began := time.Now()
		server.Silence()
		<-lease.Done()
		lost(t, context.Cause(leased.Context(lease)), holdfast.LossExpired)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("told after %v", took)
		}
		if _, err := client.Mutex("other").TryLock(t.Context()); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		server.Resume()
		lock(t, client.Mutex("order:42"))
	})
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		client := server.Client(nil)
		lease := lock(t, client.Mutex("order:42"))
		server.Slow(100 * time.Millisecond)
		began := time.Now()
		fatal.If(t, lease.Check(t.Context()))
		if took := time.Since(began); took < 100*time.Millisecond || took > 300*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		server.Slow(0)
		began = time.Now()
		if err := lease.Check(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("it took %v: %v", time.Since(began), err)
		}
	})
}

func TestDisconnect(t *testing.T) {
	both(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		client := server.Client(nil)
		lease := lock(t, client.Mutex("order:42"))
		server.Disconnect()
		next := lock(t, client.Mutex("other"))
		for _, lease := range []*holdfast.Lease{lease, next} {
			fatal.If(t, lease.Release())
		}
	})
}

// failing is a test that notes its failure.
type failing struct {
	*testing.T
	failed bool
}

func (f *failing) Fatalf(string, ...any) {
	f.failed = true
	panic(f)
}

func TestLoseFails(t *testing.T) {
	for name, spoil := range map[string]func(*holdfasttest.Server, *holdfast.Lease){
		"released": func(_ *holdfasttest.Server, lease *holdfast.Lease) { _ = lease.Release() },
		"silent":   func(server *holdfasttest.Server, _ *holdfast.Lease) { server.Silence() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &failing{T: t}
				server := holdfasttest.Start(f)
				lease := lock(t, server.Client(nil).Mutex("order:42"))
				spoil(server, lease)
				defer func() {
					if recover() != f || !f.failed {
						t.Error("the test does not fail")
					}
					server.Resume()
				}()
				server.Lose(lease)
			})
		})
	}
}

// A test that passes prints nothing but that: no line of go-redis about connections that fail. Its
// logger is one for all clients of the process, and is left as it was.
func TestPassingTestsAreQuiet(t *testing.T) {
	if os.Getenv("HOLDFASTTEST_CHILD") != "" {
		t.Skip("it is the child")
	}
	child := exec.Command(os.Args[0], "-test.run", "TestSilence|TestDisconnect|TestNew|TestLose|TestSlow|TestExport",
		"-test.count", "3")
	child.Env = append(os.Environ(), "HOLDFASTTEST_CHILD=1")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text := strings.TrimSpace(string(out)); text != "PASS" {
		t.Errorf("the tests pass, and print %d lines, such as: %.500s", strings.Count(text, "\n"), text)
	}
}
