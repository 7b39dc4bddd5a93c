package store

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// A PoolError is in the Err of a command that found no free connection in the client's pool. The
// command is unsent.
type PoolError struct {
	Size int // of the pool; 0: not known
}

func (e *PoolError) Error() string {
	if e.Size == 0 {
		return "no free connection in the client's pool"
	}
	return fmt.Sprintf("no free connection in the client's pool: %d of %d in use", e.Size, e.Size)
}

// Ended returns why ctx has ended, or nil. A deadline that is over counts even if the timer of ctx
// has not noticed.
func Ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// Unsent says of n commands that they were not sent.
func Unsent(n int, err error) []Reply {
	replies := make([]Reply, n)
	for i := range replies {
		replies[i] = Reply{Err: err, Unsent: true}
	}
	return replies
}

// Unusable returns a store that can never work, for a reason. It is a Checker, and all its methods
// fail with the reason.
func Unusable(why error) Store { return unusableStore{why} }

type unusableStore struct{ why error }

func (u unusableStore) Unusable() error { return u.why }

func (u unusableStore) Do(_ context.Context, _ string, commands []Command) []Reply {
	return Unsent(len(commands), u.why)
}

func (u unusableStore) Nodes(context.Context) (Nodes, error) { return Nodes{}, u.why }

func (u unusableStore) Refresh(context.Context, string) error { return u.why }

func (u unusableStore) Renew(string) {}

func (u unusableStore) Listen(context.Context, string, bool, Events) (Listener, error) {
	return nil, u.why
}

// Plain returns what a client library made of an answer as the Value of a Reply. Only servers that
// were told to speak RESP3 inside scripts answer with bool, float64 and maps.
func Plain(v any) any {
	switch v := v.(type) {
	case nil, string, int64:
		return v
	case []any:
		for i, e := range v {
			switch e.(type) {
			case nil, string, int64: // assigning would only cost
			default:
				v[i] = Plain(e)
			}
		}
		return v
	case bool:
		if v {
			return int64(1)
		}
		return nil // as in RESP2
	case float64:
		return strconv.FormatFloat(v, 'g', 17, 64)
	case map[any]any:
		return flat(v)
	case map[string]any:
		return flat(v)
	}
	return fmt.Sprint(v)
}

func flat[K comparable](m map[K]any) []any {
	list := make([]any, 0, 2*len(m))
	for k, v := range m {
		list = append(list, Plain(k), Plain(v))
	}
	return list
}
