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

	"github.com/redis/go-redis/v9"

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
	opt := &redis.Options{Addr: srv.Addr()}
	as(opt)
	rdb := redis.NewClient(opt)
	defer rdb.Close()
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
	for op, attack := range map[string]func(*testing.T, *visitor){
		"release": func(t *testing.T, v *visitor) {
			if v.as("release"); harness.Must(t, v.srv, "EXISTS", harness.KeyOf("n")) != int64(0) {
				t.Error("it is held")
			}
		},
		"prolong": func(t *testing.T, v *visitor) {
			v.as("renew")
			if left := harness.Must(t, v.srv, "PTTL", harness.KeyOf("n")).(int64); left < time.Hour.Milliseconds()/2 {
				t.Errorf("%d ms are left", left)
			}
		},
	} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			v := visit(t)
			var opts []holdfast.Option
			if op == "prolong" {
				// a renewal would set the end again
				opts = append(opts, holdfast.WithoutRenewal(), holdfast.WithTTL(time.Minute))
			}
			held := harness.Lock(t, harness.Locker(t, v.srv.Addr(), harness.Brief(9*time.Second)).Mutex("n", opts...))
			v.state = harness.Must(t, v.srv, "GET", harness.KeyOf("n")).(string)
			attack(t, v)
			if op == "prolong" {
				harness.Release(t, held) // as it was
				return
			}
			var lost *holdfast.LostError
			if err := harness.Checked(t, held); !errors.As(err, &lost) || lost.Reason != holdfast.LossGone {
				t.Errorf("lost by %v", err)
			}
		})
	}
}

// A visitor is a client of the smallest user that keeps what it sent, and sends it again with what
// it has read.
type visitor struct {
	store.Store
	t     *testing.T
	srv   *redisserver.Server
	own   *holdfast.Client
	state string // of n, as it was read

	mu   sync.Mutex
	sent map[string][]any
}

// visit holds n once, so that the visitor knows the requests.
func visit(t *testing.T) *visitor {
	t.Helper()
	srv := redisserver.Start(t)
	opt := &redis.Options{Addr: srv.Addr()}
	grant(t, srv, "visitor", "holdfast", permissions.Smallest(t, "refused without it")...)(opt)
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { rdb.Close() })
	v := &visitor{Store: redisstore.New(rdb), t: t, srv: srv, sent: map[string][]any{}}
	own, err := holdfast.New(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	v.own = own
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
