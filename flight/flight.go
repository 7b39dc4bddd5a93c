package flight

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A State says of a value whether it can be used.
type State int

// The states of a value.
const (
	Stale        State = iota // it must be made before it is used; also: there is none
	RefreshAhead              // it can be used, and one process should make the next one already
	Fresh                     // it can be used
)

// StateOf returns the state of a value that expires at a moment, by the clock of this process. It
// is RefreshAhead for so long before that moment. The zero time is that of no value: Stale.
func StateOf(expires time.Time, ahead time.Duration) State {
	switch left := time.Until(expires); {
	case left <= 0:
		return Stale
	case left <= ahead:
		return RefreshAhead
	}
	return Fresh
}

// Do returns the value that read finds, if it is fresh. Otherwise one of all processes calls
// compute, which makes the value and stores it. The others wait, and return what read finds then.
// The name is that of an RWMutex of the client.
//
// The ctx of compute ends when the lease is lost. Its token is the fencing token of the lease, and
// 0 if WithFailOpen computes without. Both functions may be called in another goroutine. A compute
// that does not store has every process compute, one after the other.
//
// The error is that of read or compute, as the package says. A *holdfast.WaitError says that ctx
// ended. An *holdfast.ArgumentError says what is wrong with the arguments. Otherwise it is that of
// the lock: see holdfast.RWMutex.
func Do[T any](ctx context.Context, client *holdfast.Client, name string,
	read func(ctx context.Context) (T, State, error),
	compute func(ctx context.Context, token int64) (T, error), options ...Option) (T, error) {
	var none T
	s := newSettings(options)
	if err := s.check(ctx, client, name, read == nil, compute == nil); err != nil {
		return none, err
	}
	began := time.Now()
	if ctx.Err() != nil {
		return none, waitError(ctx, name, began)
	}
	c := join(ctx, &call[T]{
		key:      key{client: client, name: name, value: reflect.TypeFor[T]()},
		read:     read,
		compute:  compute,
		settings: s,
	})
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.leave(ctx) {
			return none, waitError(ctx, name, began)
		}
		<-c.done
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.result, c.err
}

// waitError returns the error of a caller whose context ended.
func waitError(ctx context.Context, name string, began time.Time) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &holdfast.WaitError{Name: name, Waited: time.Since(began), Reason: holdfast.WaitContext, Err: err}
}

// A key says which callers share a call.
type key struct {
	client *holdfast.Client
	name   string
	value  reflect.Type
	ahead  bool // it refreshes ahead
}

// A nestedKey is the key of what a context says to the calls that compute makes.
type nestedKey struct {
	client *holdfast.Client
	name   string
}

// A call is one that several callers of this process share.
type call[T any] struct {
	key
	settings
	read    func(context.Context) (T, State, error)
	compute func(context.Context, int64) (T, error)

	lock   *holdfast.RWMutex
	cancel context.CancelCauseFunc
	lost   bool // it led, and its lease was lost

	callers int // how many wait for it; the mutex of calls guards it
	over    bool

	done     chan struct{} // closed when all that follows is set
	result   T
	err      error
	panicked *panicError
}

var (
	mu       sync.Mutex
	calls    = map[key]any{}     // of *call
	failures = map[key]failure{} // of late, for as long as they count
)

// join makes the caller one of those of the call with the same key, and begins it if there is none.
func join[T any](ctx context.Context, c *call[T]) *call[T] {
	mu.Lock()
	defer mu.Unlock()
	if shared, ok := calls[c.key].(*call[T]); ok {
		shared.callers++
		return shared
	}
	c.callers = 1
	c.begin(ctx)
	return c
}

// refreshAhead begins a call that nobody waits for, unless there is one or one failed lately.
func (c *call[T]) refreshAhead(ctx context.Context) {
	ahead := &call[T]{key: c.key, settings: c.settings, read: c.read, compute: c.compute}
	ahead.key.ahead = true
	mu.Lock()
	defer mu.Unlock()
	if calls[ahead.key] == nil && failures[ahead.key].err == nil && failures[c.key].err == nil {
		ahead.begin(ctx)
	}
}

// begin runs the call in a goroutine of its own. The mutex of calls is held.
func (c *call[T]) begin(ctx context.Context) {
	c.done = make(chan struct{})
	c.lock = c.client.RWMutex(c.name, c.lockOptions...)
	ctx = context.WithValue(context.WithoutCancel(ctx), nestedKey{c.client, c.name}, true)
	ctx, c.cancel = context.WithCancelCause(ctx)
	calls[c.key] = c
	go c.run(ctx)
}

// leave takes a caller out whose ctx ended, and ends the call with the last. False: the call is
// over, and the caller is told how it ended.
func (c *call[T]) leave(ctx context.Context) bool {
	mu.Lock()
	defer mu.Unlock()
	if c.over {
		return false
	}
	if c.callers--; c.callers == 0 {
		delete(calls, c.key)
		c.cancel(context.Cause(ctx))
	}
	return true
}

// run runs the call, and tells its callers how it ended.
func (c *call[T]) run(ctx context.Context) {
	returned := false
	defer func() {
		if !returned {
			c.panicked = &panicError{recover(), debug.Stack()}
		}
		if c.finish() == 0 && c.panicked != nil {
			panic(c.panicked)
		}
	}()
	c.result, c.err = c.get(ctx)
	returned = true
}

// finish ends the call, and returns how many callers are told.
func (c *call[T]) finish() int {
	mu.Lock()
	defer mu.Unlock()
	if calls[c.key] == any(c) {
		delete(calls, c.key)
	}
	if c.ahead && c.err != nil {
		keepError(c.key, c.err, pause)
	}
	c.over = true
	c.cancel(context.Canceled)
	close(c.done)
	return c.callers
}

// A failure is an error that counts for some time.
type failure struct {
	err  error
	over *time.Timer
}

// shareError gives an error of compute to the callers of this process that come within some time.
func (c *call[T]) shareError(err error) {
	if c.shares {
		mu.Lock()
		defer mu.Unlock()
		shared := c.key
		shared.ahead = false
		keepError(shared, err, c.sharedErrors)
	}
}

// keepError keeps an error for some time. The mutex is held.
func keepError(k key, err error, within time.Duration) {
	if before := failures[k]; before.over != nil {
		before.over.Stop()
	}
	var over *time.Timer
	over = time.AfterFunc(within, func() {
		mu.Lock()
		defer mu.Unlock()
		if failures[k].over == over {
			delete(failures, k)
		}
	})
	failures[k] = failure{err, over}
}

// A panicError is what a caller panics with, for a panic of read or compute. The value is nil if
// that called runtime.Goexit.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string {
	if p.value == nil {
		return "flight: read or compute called runtime.Goexit"
	}
	return fmt.Sprintf("flight: %v\n\n%s", p.value, p.stack)
}

func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
