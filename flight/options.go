package flight

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

const (
	look  = 10 * time.Second // a call that fails open waits so long before it looks whether the server is there
	pause = time.Second      // after a refresh ahead that failed
)

// An Option sets how Do works. Of a shared call, those of its first caller count.
type Option func(*settings)

type settings struct {
	lockOptions  []holdfast.Option
	sharedErrors time.Duration
	shares       bool
	failOpen     bool
}

// WithLock sets options of the lock, such as its TTL, its label, how long compute may last
// (WithMaxHold), or how long a call waits. The holders of one owner (WithOwner) do not exclude each
// other: they would compute at once.
func WithLock(options ...holdfast.Option) Option {
	return func(s *settings) { s.lockOptions = append(s.lockOptions, options...) }
}

// WithSharedErrors gives an error of compute to the callers of this process that come within some
// time after it, above 0, if they find no fresh value. They call neither compute nor the server.
// The processes that wait compute all the same, one after the other.
func WithSharedErrors(within time.Duration) Option {
	return func(s *settings) { s.sharedErrors, s.shares = within, true }
}

// WithFailOpen has a call compute without the lock if its server is unavailable, as
// holdfast.ErrUnavailable says: a value is made at all, and perhaps by every process at once, which
// is the stampede that the lock prevents. So it is for a value that may be made and stored twice,
// by a backend that endures that. The token is 0: a storage that checks tokens should take it for
// the smallest. Within a process the callers still share one call. A refresh ahead never fails
// open.
//
// A call that waits looks after 10 s whether the server is there. WithWait in WithLock sets that
// time, and does not bound the waiting then. An ErrUnavailable after a compute whose lease was lost
// has the call compute once more.
func WithFailOpen() Option { return func(s *settings) { s.failOpen = true } }

func newSettings(options []Option) (s settings) {
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	if s.failOpen {
		s.lockOptions = append([]holdfast.Option{holdfast.WithWait(look)}, s.lockOptions...)
	}
	return s
}

// check returns what is wrong with the arguments of Do.
func (s *settings) check(ctx context.Context, client *holdfast.Client, name string, noRead, noCompute bool) error {
	e := &holdfast.ArgumentError{Call: fmt.Sprintf("flight.Do(%q)", name)}
	refuse := func(wrong bool, argument string, value any, allowed string) {
		if wrong {
			problem := holdfast.ArgumentProblem{Argument: argument, Value: value, Allowed: allowed}
			e.Problems = append(e.Problems, problem)
		}
	}
	refuse(ctx == nil, "ctx", nil, "not nil")
	refuse(ctx != nil && ctx.Value(nestedKey{client, name}) != nil, "ctx", "of read or compute of this name",
		"one of another call: this one would wait for itself")
	refuse(client == nil, "client", nil, "not nil")
	refuse(noRead, "read", nil, "not nil")
	refuse(noCompute, "compute", nil, "not nil")
	refuse(s.shares && s.sharedErrors <= 0, "WithSharedErrors", s.sharedErrors, "above 0")
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}
