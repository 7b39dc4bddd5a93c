package harness

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// Client makes a client of go-redis. The test closes it when it ends.
func Client(tb testing.TB, addr string, opts ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	opt := &redis.Options{Addr: addr}
	for _, change := range opts {
		change(opt)
	}
	rdb := redis.NewClient(opt)
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Open makes a client of holdfast. The caller closes it.
func Open(tb testing.TB, rdb redis.UniversalClient, config *holdfast.Config) *holdfast.Client {
	tb.Helper()
	client, err := holdfast.New(redisstore.New(rdb), config)
	fatal.If(tb, err)
	return client
}

// Locker makes a client of holdfast, on connections of its own. Without a config its TTL is longer
// than Patience: a lock that is free within that time was given back.
func Locker(t *testing.T, addr string, config *holdfast.Config, opts ...func(*redis.Options)) *holdfast.Client {
	t.Helper()
	if config == nil {
		config = Brief(time.Minute)
	}
	c := Open(t, Client(t, addr, opts...), config)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Proxied starts a server and a proxy before it.
func Proxied(t *testing.T, opts ...string) (*redisserver.Server, *fault.Proxy) {
	t.Helper()
	srv := redisserver.Start(t, opts...)
	return srv, fault.Start(t, srv.Addr())
}

// Brief returns a configuration with a TTL and nothing else.
func Brief(ttl time.Duration) *holdfast.Config { return &holdfast.Config{TTL: ttl} }

// Answered asks until the server answers, and returns what it says. A server that stands still for
// a moment does not answer, and a node that has just come may not be found yet.
func Answered(t *testing.T, ask func() error) (err error) {
	t.Helper()
	Eventually(t, "an answer", func() bool {
		err = ask()
		return !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrLost)
	})
	return err
}

// Checked returns what Check of a lease says once the server answers.
func Checked(t *testing.T, lease *holdfast.Lease) error {
	t.Helper()
	return Answered(t, func() error { return lease.Check(t.Context()) })
}

// An Observer is a function that is told of events.
type Observer func(holdfast.Event)

// Observe calls the function.
func (f Observer) Observe(event holdfast.Event) { f(event) }

// Events keeps what an observer is told.
type Events struct {
	mu  sync.Mutex
	all []holdfast.Event
}

// Observe keeps the event.
func (e *Events) Observe(event holdfast.Event) {
	e.mu.Lock()
	e.all = append(e.all, event)
	e.mu.Unlock()
}

// Count returns the number of events of a kind so far.
func (e *Events) Count(kind holdfast.EventKind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.all {
		if event.Kind == kind {
			n++
		}
	}
	return n
}

// Lock waits for a lease, long enough.
func Lock(t *testing.T, m *holdfast.Mutex) *holdfast.Lease {
	t.Helper()
	lease, err := m.Lock(Within(t, Patience))
	fatal.If(t, err)
	return lease
}

// Release releases a lease, and ends the test when that fails.
func Release(t *testing.T, lease *holdfast.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Fatal("release: ", err)
	}
}

// HandBack releases a lease that may have been handed over by a message. Such a lease is trusted
// for half a second, until its first renewal, and a release takes no longer than trust lasts. If
// process or server stood still for so long, the lease was lost, or its release is not certain and
// goes on in the background.
func HandBack(t *testing.T, lease *holdfast.Lease) {
	t.Helper()
	err := lease.Release()
	var lost *holdfast.LostError
	if err != nil && !errors.Is(err, holdfast.ErrUncertain) &&
		(!errors.As(err, &lost) || lost.Reason != holdfast.LossExpired) {
		t.Error("hand back: ", err)
	}
}

// Given releases the lease of a successful lock, and returns the error of either.
func Given(lease *holdfast.Lease, err error) error {
	if err != nil {
		return err
	}
	return lease.Release()
}

// A Claimant is a Lock under way.
type Claimant struct {
	Done  chan struct{} // closed when Lock has returned
	Lease *holdfast.Lease
	Err   error
}

// Claim calls Lock in a goroutine.
func Claim(ctx context.Context, m *holdfast.Mutex) *Claimant {
	c := &Claimant{Done: make(chan struct{})}
	go func() {
		defer close(c.Done)
		c.Lease, c.Err = m.Lock(ctx)
	}()
	return c
}

// Got waits for the lease.
func (c *Claimant) Got(t *testing.T) *holdfast.Lease {
	t.Helper()
	Signalled(t, "the waiter returns", c.Done)
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	return c.Lease
}
