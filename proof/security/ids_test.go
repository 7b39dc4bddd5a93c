package security_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/permissions"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// A client that may read the keys sees the id and the token of a hold, and can do nothing with
// them.
func TestKeyReaderChangesNothing(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	as := grant(t, srv, "reader", "holdfast", "@read")
	held := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n"))
	rdb := harness.Client(t, srv.Addr(), as)
	state := rdb.Get(t.Context(), harness.KeyOf("n")).Val()
	if !strings.Contains(state, held.Owner()) || !strings.Contains(state, strconv.FormatInt(held.Token(), 10)) {
		t.Fatalf("read %q, not the hold", state)
	}
	reader := harness.Locker(t, srv.Addr(), nil, as)
	for op, do := range map[string]func() error{
		"break": func() error { return reader.Break(t.Context(), "n", held.Token()) },
		"lock":  func() error { return harness.Given(reader.Mutex("n").TryLock(t.Context())) },
		"enter": func() error {
			return harness.Given(reader.Mutex("n", holdfast.WithOwner(held.Owner())).TryLock(t.Context()))
		},
	} {
		var failure *holdfast.StoreError
		if err := harness.Answered(t, do); !errors.As(err, &failure) || failure.Kind != holdfast.StoreDenied {
			t.Errorf("%s: %v", op, err)
		}
	}
	if harness.Must(t, srv, "GET", harness.KeyOf("n")) != state {
		t.Error("it was touched")
	}
	harness.Release(t, held)
}

// A client that may run the scripts and has read the id of a hold can do with it what its holder
// can. The holder is told.
func TestHoldIDReadActsAsHolder(t *testing.T) {
	t.Parallel()
	t.Run("release", func(t *testing.T) {
		t.Parallel()
		v := visit(t)
		held := v.readHoldOf(harness.Brief(9 * time.Second))
		if v.as("release"); harness.Must(t, v.srv, "EXISTS", harness.KeyOf("n")) != int64(0) {
			t.Error("it is held")
		}
		var lost *holdfast.LostError
		if err := harness.Checked(t, held); !errors.As(err, &lost) || lost.Reason != holdfast.LossGone {
			t.Errorf("lost by %v", err)
		}
	})
	t.Run("prolong", func(t *testing.T) {
		t.Parallel()
		v := visit(t)
		held := v.readHoldOf(harness.Brief(time.Minute), holdfast.WithoutRenewal()) // which would set the end again
		v.as("renew")
		if left := harness.Must(t, v.srv, "PTTL", harness.KeyOf("n")).(int64); left < time.Hour.Milliseconds()/2 {
			t.Errorf("%d ms are left", left)
		}
		harness.Release(t, held) // as it was
	})
}

// readHoldOf reads the hold of another.
func (v *visitor) readHoldOf(config *holdfast.Config, options ...holdfast.Option) *holdfast.Lease {
	v.t.Helper()
	held := harness.Lock(v.t, harness.Locker(v.t, v.srv.Addr(), config).Mutex("n", options...))
	v.state = harness.Must(v.t, v.srv, "GET", harness.KeyOf("n")).(string)
	return held
}

// A visitor is a client of the smallest user that keeps what it sent, and sends it again with what
// it has read.
type visitor struct {
	store.Store
	t     *testing.T
	srv   *redisserver.Server
	state string // of n, as it was read

	mu   sync.Mutex
	sent map[string][]any
}

// visit holds n once, so that the visitor knows the requests.
func visit(t *testing.T) *visitor {
	t.Helper()
	srv := redisserver.Start(t)
	as := grant(t, srv, "visitor", "holdfast", permissions.Smallest(t, "refused without it")...)
	v := &visitor{Store: redisstore.New(harness.Client(t, srv.Addr(), as)), t: t, srv: srv, sent: map[string][]any{}}
	own, err := holdfast.New(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	lease := harness.Lock(t, own.Mutex("n"))
	if err := harness.Checked(t, lease); err != nil {
		t.Fatal(err)
	}
	harness.Release(t, lease)
	return v
}

// Do implements store.Store.
func (v *visitor) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	v.mu.Lock()
	for _, args := range commands {
		switch {
		case args[0] != "EVALSHA":
		case args[2] == 1 && len(args) == 3+1+5:
			v.sent["renew"] = slices.Clone(args)
		case args[2] == 4 && len(args) == 3+4+4:
			v.sent["release"] = slices.Clone(args)
		}
	}
	v.mu.Unlock()
	return v.Store.Do(ctx, node, commands)
}

// as sends a request of the visitor's for the hold that it has read.
func (v *visitor) as(op string) {
	v.t.Helper()
	v.mu.Lock()
	args := v.sent[op]
	v.mu.Unlock()
	switch {
	case args == nil:
		v.t.Fatalf("the visitor has not seen how to %s", op)
	case op == "renew":
		args[4], args[5], args[6] = v.state[:42], v.state[42:], strconv.FormatInt(time.Hour.Milliseconds(), 10)
	default:
		args[7], args[8] = v.state[:26], v.state[42:]
	}
	if r := v.Store.Do(v.t.Context(), "", []store.Command{args})[0]; r.Err != nil || r.Refused != "" {
		v.t.Fatalf("%s: %+v", op, r)
	}
}
