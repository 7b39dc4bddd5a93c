package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// judged is a test whose failures are kept.
type judged struct {
	*testing.T
	mu    sync.Mutex
	texts []string
}

func (j *judged) Errorf(format string, args ...any) {
	j.mu.Lock()
	j.texts = append(j.texts, fmt.Sprintf(format, args...))
	j.mu.Unlock()
}

// failures returns what the test failed with so far.
func (j *judged) failures() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.texts
}

func ordered(t *testing.T, class []func(string) string, run func(w *judged, c *holdfast.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &judged{T: t}
		c := holdfasttest.Start(t).Client(&holdfast.Config{Observer: holdfasttest.Orders(w, class...)})
		run(w, c)
	})
}

// under locks names, each under the context of the one before, and releases them.
func under(t *testing.T, c *holdfast.Client, names ...string) {
	t.Helper()
	ctx := t.Context()
	for _, name := range names {
		lease := mustLock(ctx, t, c.Mutex(name).Lock)
		defer release(t, lease)
		ctx = leased.Context(lease)
	}
}

func release(t *testing.T, lease *holdfast.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

// mustLock returns the lease of a method that must not fail.
func mustLock(ctx context.Context, t *testing.T, lock func(context.Context) (*holdfast.Lease, error)) *holdfast.Lease {
	t.Helper()
	lease, err := lock(ctx)
	fatal.If(t, err)
	return lease
}

// A do is a method that runs a function while a lock is held.
type do func(context.Context, func(context.Context) error) error

// places are the places in a failure, by the names that they are about.
var places = regexp.MustCompile(`"(\S+)" was locked under "(\S+)" at \S+/(\w+\.go:\d+)`)

// An inversion is told with both places, although the test does not deadlock, by whatever methods
// the names were locked.
func TestOrdersInversion(t *testing.T) {
	for name, lock := range map[string]func(c *holdfast.Client, name string) do{
		"Do":      func(c *holdfast.Client, name string) do { return c.Mutex(name).Do },
		"writers": func(c *holdfast.Client, name string) do { return c.RWMutex(name).Do },
		"readers": func(c *holdfast.Client, name string) do { return c.RWMutex(name).RDo },
		"strict": func(c *holdfast.Client, name string) do {
			return c.Mutex(name, holdfast.WithStrictOrder()).Do
		},
		"polling": func(c *holdfast.Client, name string) do {
			return c.Mutex(name, holdfast.WithPolling(time.Second, 0)).Do
		},
		"permits": func(c *holdfast.Client, name string) do {
			return func(ctx context.Context, fn func(context.Context) error) error {
				return c.Semaphore(name, 2).Do(ctx, 1, fn)
			}
		},
		"groups": func(c *holdfast.Client, name string) do { return c.All([]string{name}).Do },
		"Bind": func(c *holdfast.Client, name string) do {
			return func(ctx context.Context, fn func(context.Context) error) error {
				lease, err := c.Mutex(name).Lock(ctx)
				if err != nil {
					return err
				}
				bound, cancel := lease.Bind(ctx)
				defer cancel()
				return errors.Join(fn(bound), lease.Release())
			}
		},
		"Locker": func(c *holdfast.Client, name string) do {
			return func(ctx context.Context, fn func(context.Context) error) error {
				if _, inner := holdfast.LeaseFrom(ctx); name == "a" || !inner {
					return c.Mutex(name).Do(ctx, fn) // code under a Locker has no context of the lease
				}
				l := c.Mutex(name).Locker(ctx, nil)
				l.Lock()
				defer l.Unlock()
				return fn(ctx)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ordered(t, nil, func(w *judged, c *holdfast.Client) {
				for _, names := range [][2]string{{"a", "b"}, {"b", "a"}, {"a", "b"}, {"b", "a"}} {
					if n := len(w.failures()); n > 0 && names[0] == "b" && n != 1 {
						w.T.Errorf("told %d times", n)
					}
					err := lock(c, names[0])(w.Context(), func(ctx context.Context) error {
						return lock(c, names[1])(ctx, func(context.Context) error { return nil })
					})
					fatal.If(w.T, err)
				}
				got := w.failures()
				if len(got) != 1 {
					w.T.Fatalf("failures: %q", got)
				}
				found := places.FindAllStringSubmatch(got[0], -1)
				if len(found) != 2 || found[0][1] != "a" || found[0][2] != "b" || found[1][1] != "b" ||
					found[1][2] != "a" {
					w.T.Fatalf("got %s", got[0])
				}
				for _, place := range found {
					if !strings.HasPrefix(place[3], "orders_test.go:") {
						w.T.Errorf("the place is %s", place[3])
					}
				}
			})
		})
	}
}

// A caller that waits has an order already, although it may never get in.
func TestOrdersWaiting(t *testing.T) {
	ordered(t, nil, func(w *judged, c *holdfast.Client) {
		under(w.T, c, "a", "b")
		a := mustLock(w.Context(), w.T, c.Mutex("a").Lock)
		b := mustLock(w.Context(), w.T, c.Mutex("b").Lock)
		ctx, cancel := context.WithTimeout(leased.Context(b), time.Second)
		defer cancel()
		if _, err := c.Mutex("a").Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.T.Errorf("got %v", err)
		}
		if got := w.failures(); len(got) != 1 {
			w.T.Errorf("failures: %q", got)
		}
		release(w.T, a)
		release(w.T, b)
	})
}

// A waiter that another goroutine of the process lets in has its own place, not that of the other.
func TestOrdersPassed(t *testing.T) {
	ordered(t, nil, func(w *judged, c *holdfast.Client) {
		under(w.T, c, "b", "a")
		b := mustLock(w.Context(), w.T, c.Mutex("b").Lock)
		done := make(chan struct{})
		go func() { under(w.T, c, "a", "b"); close(done) }()
		synctest.Wait()
		<-time.After(10 * time.Millisecond)
		release(w.T, b)
		<-done
		got := w.failures()
		if len(got) != 1 || len(places.FindAllString(got[0], -1)) != 2 {
			w.T.Errorf("failures: %q", got)
		}
	})
}

// Circles of three names, and over classes.
func TestOrdersCircle(t *testing.T) {
	first := func(name string) string { class, _, _ := strings.Cut(name, ":"); return class }
	for name, test := range map[string]struct {
		class []func(string) string
		order [][]string
		want  []string // the names in the one failure, in pairs
	}{
		"three":         {nil, [][]string{{"a", "b"}, {"b", "c"}, {"c", "a"}}, []string{"a c", "b a", "c b"}},
		"three at once": {nil, [][]string{{"a", "b", "c"}, {"c", "a"}}, []string{"a c", "c a"}},
		"classes": {[]func(string) string{first}, [][]string{{"order:1", "user:1"}, {"user:2", "order:2"}},
			[]string{"order:2 user:2", "user:1 order:1"}},
		"other names": {nil, [][]string{{"order:1", "user:1"}, {"user:2", "order:2"}}, nil},
		"of one class": {[]func(string) string{first},
			[][]string{{"order:1", "order:2"}, {"order:2", "order:3"}, {"order:1", "order:3"}}, nil},
		"of one class, wrong": {[]func(string) string{first},
			[][]string{{"order:1", "order:2"}, {"order:2", "order:1"}}, []string{"order:1 order:2", "order:2 order:1"}},
		"same order":         {nil, [][]string{{"a", "b", "c"}, {"a", "c"}, {"b", "c"}, {"a", "b"}}, nil},
		"reentry":            {nil, [][]string{{"a", "b", "a"}, {"a", "a"}}, nil},
		"reentry, then more": {nil, [][]string{{"a", "b", "a", "c"}, {"c", "b"}}, []string{"b c", "c b"}},
	} {
		t.Run(name, func(t *testing.T) {
			ordered(t, test.class, func(w *judged, c *holdfast.Client) {
				for _, names := range test.order {
					under(w.T, c, names...)
				}
				var got []string
				for _, found := range places.FindAllStringSubmatch(strings.Join(w.failures(), "\n"), -1) {
					got = append(got, found[1]+" "+found[2])
				}
				if len(w.failures()) > 1 || strings.Join(got, ", ") != strings.Join(test.want, ", ") {
					w.T.Errorf("got %q, want %q: %s", got, test.want, strings.Join(w.failures(), "\n"))
				}
			})
		})
	}
}

// Locking without an order, or without waiting, raises no alarm.
func TestOrdersNoFalseAlarm(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, c *holdfast.Client){
		"released before": func(t *testing.T, c *holdfast.Client) {
			for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
				lease := lock(t, c.Mutex(names[0]))
				ctx := context.WithoutCancel(leased.Context(lease))
				release(t, lease)
				next := mustLock(ctx, t, c.Mutex(names[1]).Lock)
				release(t, next)
			}
		},
		"contexts of their own": func(t *testing.T, c *holdfast.Client) {
			for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
				first, second := lock(t, c.Mutex(names[0])), lock(t, c.Mutex(names[1]))
				release(t, first)
				release(t, second)
			}
		},
		"groups": func(t *testing.T, c *holdfast.Client) {
			for _, names := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "a"}} {
				lease := mustLock(t.Context(), t, c.All(names).Lock)
				inner := mustLock(leased.Context(lease), t, c.All(names).Lock) // enters
				release(t, inner)
				release(t, lease)
			}
		},
		"tries": func(t *testing.T, c *holdfast.Client) {
			under(t, c, "a", "b")
			lease := lock(t, c.Mutex("b"))
			tried := mustLock(leased.Context(lease), t, c.Mutex("a").TryLock)
			release(t, tried)
			release(t, lease)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ordered(t, nil, func(w *judged, c *holdfast.Client) {
				run(w.T, c)
				if got := w.failures(); len(got) > 0 {
					w.T.Errorf("failures: %q", got)
				}
			})
		})
	}
}

// A hold is entered without waiting, but permits are taken: the caller may wait for a holder that
// waits for the name which the caller has locked since.
func TestOrdersMorePermits(t *testing.T) {
	ordered(t, nil, func(w *judged, c *holdfast.Client) {
		ctx, s := w.Context(), c.Semaphore("s", 3)
		for _, take := range []func(context.Context) (*holdfast.Lease, error){
			func(ctx context.Context) (*holdfast.Lease, error) { return s.Acquire(ctx, 1) },
			// of the same name: no order
			func(ctx context.Context) (*holdfast.Lease, error) { return s.Acquire(ctx, 1) },
			c.Mutex("b").Lock,
			func(ctx context.Context) (*holdfast.Lease, error) { return s.Acquire(ctx, 1) },
		} {
			if got := w.failures(); len(got) > 0 {
				w.T.Errorf("failures: %q", got)
			}
			lease := mustLock(ctx, w.T, take)
			defer release(w.T, lease)
			ctx = leased.Context(lease)
		}
		if got := w.failures(); len(got) != 1 {
			w.T.Errorf("failures: %q", got)
		}
	})
}

// A name that a group holds comes before what is locked under the group.
func TestOrdersUnderAGroup(t *testing.T) {
	ordered(t, nil, func(w *judged, c *holdfast.Client) {
		group := mustLock(w.Context(), w.T, c.All([]string{"a", "b"}).Lock)
		lease := mustLock(leased.Context(group), w.T, c.Mutex("c").Lock)
		release(w.T, lease)
		release(w.T, group)
		under(w.T, c, "c", "b")
		if got := w.failures(); len(got) != 1 || !strings.Contains(got[0], `"c" was locked under "b"`) {
			w.T.Errorf("failures: %q", got)
		}
	})
}
