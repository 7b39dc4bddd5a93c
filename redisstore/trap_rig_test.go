package redisstore_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// The tests in files named trap_* run on real servers. Each says in its comment into which trap of lock libraries
// it would see us fall; the numbers are those of the list that they were collected in.

// patience bounds what must happen, on a machine that has much else to do, and stands still at times.
const patience = 30 * time.Second

// thorough tells that the long counts are wanted.
var thorough = os.Getenv("HOLDFAST_CHECK") == "1"

// locker makes a client of its own, on connections of its own. Without a config its TTL is longer than patience: what ends
// within that was given back.
func locker(t *testing.T, addr string, config *holdfast.Config, opts ...func(*redis.Options)) *holdfast.Client {
	t.Helper()
	opt := &redis.Options{Addr: addr}
	for _, change := range opts {
		change(opt)
	}
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { rdb.Close() })
	if config == nil {
		config = brief(time.Minute)
	}
	c, err := holdfast.New(redisstore.New(rdb), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// proxied is a server behind a proxy.
func proxied(t *testing.T, opts ...string) (*redisserver.Server, *fault.Proxy) {
	t.Helper()
	srv := redisserver.Start(t, opts...)
	return srv, fault.Start(t, srv.Addr())
}

func brief(ttl time.Duration) *holdfast.Config { return &holdfast.Config{TTL: ttl} }

// lock waits for a lease, long enough.
func lock(t *testing.T, m *holdfast.Mutex) *holdfast.Lease {
	t.Helper()
	lease, err := m.Lock(within(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease *holdfast.Lease) {
	t.Helper()
	if err := lease.Release(context.Background()); err != nil {
		t.Fatal("release: ", err)
	}
}

// handBack releases a lease that may have been handed over by a message. Such a lease is trusted for half a second, until its
// first renewal, and a release takes no longer than trust lasts: where process or server stood still for so long, the lease
// was lost, or its release is not certain, and what is left goes in the background.
func handBack(t *testing.T, lease *holdfast.Lease) {
	t.Helper()
	if err := lease.Release(context.Background()); !letGo(err) {
		t.Error("hand back: ", err)
	}
}

func letGo(err error) bool {
	var lost *holdfast.LostError
	return err == nil || errors.Is(err, holdfast.ErrUncertain) || errors.As(err, &lost) && lost.Reason == holdfast.LossExpired
}

// A room is what a lock guards: no two are in it whose leases are trusted at one moment.
type room struct {
	mu   sync.Mutex
	in   map[*holdfast.Lease]bool
	were int
}

func (r *room) enter(t *testing.T, lease *holdfast.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := range r.in {
		if other.Err() == nil && lease.Err() == nil { // so the other's trust had not ended when this one's began
			t.Errorf("two trusted leases: tokens %d and %d", other.Token(), lease.Token())
		}
	}
	if r.in == nil {
		r.in = make(map[*holdfast.Lease]bool)
	}
	r.in[lease] = true
	r.were++
}

func (r *room) leave(lease *holdfast.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.in, lease)
}

// A claimant is a Lock under way.
type claimant struct {
	done  chan struct{} // closed when it returned
	lease *holdfast.Lease
	err   error
}

func claim(ctx context.Context, m *holdfast.Mutex) *claimant {
	c := &claimant{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.lease, c.err = m.Lock(ctx)
	}()
	return c
}

func (c *claimant) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// got is the lease that a claimant gets at last.
func (c *claimant) got(t *testing.T) *holdfast.Lease {
	t.Helper()
	signalled(t, "the waiter returns", c.done)
	if c.err != nil {
		t.Fatal(c.err)
	}
	return c.lease
}

func signalled(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("never: %s", what)
	}
}

// must sends a command of the test itself.
func must(t *testing.T, srv *redisserver.Server, args ...any) any {
	t.Helper()
	v, err := srv.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

func keyOf(name string) string { return "holdfast:{" + name + "}" }

// inLine is how many stand in the server's queue.
func inLine(srv *redisserver.Server, name string) int64 {
	v, _ := srv.Do("ZCOUNT", keyOf(name)+":line", "1", "+inf")
	n, _ := v.(int64)
	return n
}

func waiting(t *testing.T, srv *redisserver.Server, name string, n int64) {
	t.Helper()
	eventually(t, "all stand in line", func() bool { return inLine(srv, name) == n })
}

// hears has a client listen, so that its next waiter asks once: who waits before it listens asks again as soon as it
// does, and may be let in by the answer instead of the message that a test is about.
func hears(t *testing.T, srv *redisserver.Server, c *holdfast.Client) {
	t.Helper()
	holder := lock(t, locker(t, srv.Addr(), nil).Mutex("before"))
	waiter := claim(within(t, patience), c.Mutex("before"))
	waiting(t, srv, "before", 1)
	eventually(t, "it listens", func() bool { return listening(t, srv) == 1 })
	release(t, holder)
	handBack(t, waiter.got(t))
}

// free fails when anybody holds a name: what was given back, and the server has said so, is not there any more.
func free(t *testing.T, srv *redisserver.Server, name string) {
	t.Helper()
	if v := must(t, srv, "GET", keyOf(name)); v != nil {
		t.Errorf("%s is still held: %q", name, v)
	}
}

// gone waits until nothing is left of a name, and fails when that takes as long as only an expiry does.
func gone(t *testing.T, srv *redisserver.Server, name string, limit time.Duration) {
	t.Helper()
	began := time.Now()
	eventually(t, name+" is free", func() bool { return must(t, srv, "EXISTS", keyOf(name)) == int64(0) })
	if took := time.Since(began); took > limit {
		t.Errorf("%s was free after %v only", name, took)
	}
}

// sentTo is the names of the commands among what a proxy recorded, in order.
func sentTo(p *fault.Proxy) (names []string) {
	for _, chunk := range p.Sent("") {
		for _, m := range beginning.FindAllStringSubmatch(chunk, -1) {
			names = append(names, strings.ToUpper(m[1]))
		}
	}
	return names
}

var beginning = regexp.MustCompile(`\*\d+\r\n\$\d+\r\n([A-Za-z]+)\r\n`)

type observer func(holdfast.Event)

func (f observer) Observe(event holdfast.Event) { f(event) }

// events keeps what an observer is told.
type events struct {
	mu  sync.Mutex
	all []holdfast.Event
}

func (e *events) Observe(event holdfast.Event) {
	e.mu.Lock()
	e.all = append(e.all, event)
	e.mu.Unlock()
}

func (e *events) count(kind holdfast.EventKind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.all {
		if event.Kind == kind {
			n++
		}
	}
	return n
}

// child runs one test of this program as a process of its own, with more environment.
func child(test string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1", "-test.v")
	cmd.Env = append(append(os.Environ(), "HOLDFAST_CHILD=1"), env...)
	return cmd
}

// onlyChild skips what is run by child alone.
func onlyChild(t *testing.T) {
	if os.Getenv("HOLDFAST_CHILD") == "" {
		t.Skip("a part of another test")
	}
}

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

func given(lease *holdfast.Lease, err error) error {
	if err != nil {
		return err
	}
	return lease.Release(context.Background())
}

func listening(t *testing.T, srv *redisserver.Server) int {
	t.Helper()
	channels, _ := must(t, srv, "PUBSUB", "CHANNELS", "holdfast:@*").([]any)
	return len(channels)
}
