package traps_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Traps 22, 28 and 45: busy, down, denied and unable look alike. Each server that cannot serve is
// named for what it is, to who locks, waits or asks whether it is ready, with whether the request
// took effect, and nothing is left behind.
func TestServerThatRefusesSaysWhy(t *testing.T) {
	harness.Long(t)
	few := func(o *redis.Options) { o.Username, o.Password = "few", "pw" }
	guess := func(o *redis.Options) { o.Username, o.Password = "few", "guess" }
	for name, test := range map[string]struct {
		opts        []string
		make        func(*testing.T, *redisserver.Server)
		client      func(*redis.Options)
		kind        holdfast.StoreKind
		text        string
		unavailable bool // it matches ErrUnavailable, and Lock goes on asking
		only        string
	}{
		"down": {make: func(_ *testing.T, srv *redisserver.Server) { srv.Kill() },
			kind: holdfast.StoreUnreachable, unavailable: true},
		"wrong password": {make: makingUser("+@all"), client: guess, kind: holdfast.StoreDenied, text: "WRONGPASS"},
		"no password": {make: sending("ACL", "SETUSER", "default", "resetpass", ">pw"),
			kind: holdfast.StoreDenied, text: "NOAUTH"},
		"no scripts":        {make: makingUser("-@all"), client: few, kind: holdfast.StoreDenied, text: "NOPERM"},
		"no SET in scripts": {make: makingUser("+@all", "-set"), client: few, kind: holdfast.StoreDenied, only: "Lock"},
		"no EVAL": {make: makingUser("+@all", "-eval"), client: few, kind: holdfast.StoreDenied, text: "eval",
			only: "Ready"},
		"no digest": {make: makingUser("+@all", "-evalsha"), client: few, kind: holdfast.StoreDenied,
			text: "evalsha", only: "Ready"},
		"no ZADD": {make: makingUser("+@all", "-zadd"), client: few, kind: holdfast.StoreDenied, text: "ZADD",
			only: "Ready"},
		"no keys": {make: makingUser("+@all", "resetkeys", "~other*"), client: few,
			kind: holdfast.StoreDenied},
		"a replica": {make: sending("REPLICAOF", "127.0.0.1", "1"), kind: holdfast.StoreReadOnly,
			unavailable: true},
		"too few replicas": {make: sending("CONFIG", "SET", "min-replicas-to-write", 1), kind: holdfast.StoreNoReplicas,
			text:        "NOREPLICAS",
			unavailable: true},
		"out of memory": {make: sending("CONFIG", "SET", "maxmemory", 1), kind: holdfast.StoreOutOfMemory,
			unavailable: true},
		"cannot persist": {opts: []string{"--dbfilename", "taken"}, make: failToSave, kind: holdfast.StoreMisconfigured,
			text:        "MISCONF",
			unavailable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redisserver.Start(t, test.opts...)
			test.make(t, srv)
			if test.client == nil {
				test.client = func(*redis.Options) {}
			}
			var giveUp atomic.Pointer[context.CancelFunc]
			observer := harness.Observer(func(e holdfast.Event) {
				if e.Kind == holdfast.EventRetried {
					(*giveUp.Load())()
				}
			})
			c := harness.Locker(t, srv.Addr(), &holdfast.Config{Observer: observer}, test.client)
			judge := func(op string, ask func(context.Context) error) {
				t.Helper()
				var failure *holdfast.StoreError
				var err error
				harness.Eventually(t, "an answer", func() bool { // who stands still for a moment gives none
					ctx, cancel := context.WithCancel(harness.Within(t, harness.Patience))
					defer cancel()
					giveUp.Store(&cancel)
					failure, err = nil, ask(ctx)
					return !errors.As(err, &failure) || !failure.MayHaveApplied &&
						failure.Kind != holdfast.StoreNoAnswer
				})
				if failure == nil || failure.Kind != test.kind || failure.MayHaveApplied || failure.Op == "" ||
					!strings.Contains(err.Error(), test.text) {
					t.Fatalf("%s: got %v (%+v), want the kind %q", op, err, failure, test.kind)
				}
				if errors.Is(err, holdfast.ErrUnavailable) != test.unavailable || errors.Is(err, holdfast.ErrHeld) ||
					errors.Is(err, holdfast.ErrUncertain) {
					t.Errorf("%s: matches what it is not: %v", op, err)
				}
				if waits := op == "Lock" && test.unavailable; errors.Is(err, context.Canceled) != waits {
					t.Errorf("%s waits: %v, want %v: %v", op, !waits, waits, err)
				}
			}
			if test.only != "Ready" {
				judge("TryLock", func(ctx context.Context) error { return harness.Given(c.Mutex("n").TryLock(ctx)) })
				judge("Lock", func(ctx context.Context) error { return harness.Given(c.Mutex("n").Lock(ctx)) })
			}
			if test.only != "Lock" {
				judge("Ready", c.Ready)
				judge("Ready, when the scripts are there", c.Ready)
			}
			if test.kind != holdfast.StoreUnreachable && test.text != "NOAUTH" {
				if v := harness.Must(t, srv, "DBSIZE"); v != int64(0) {
					t.Errorf("%v keys left", v)
				}
			}
		})
	}
}

// sending returns a function that sends a server a command.
func sending(args ...any) func(*testing.T, *redisserver.Server) {
	return func(t *testing.T, srv *redisserver.Server) { t.Helper(); harness.Must(t, srv, args...) }
}

// makingUser returns a function that makes the user few.
func makingUser(rules ...string) func(*testing.T, *redisserver.Server) {
	return func(t *testing.T, srv *redisserver.Server) {
		t.Helper()
		args := []any{"ACL", "SETUSER", "few", "reset", "on", ">pw", "~*", "resetchannels", "&*"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		harness.Must(t, srv, args...)
	}
}

// failToSave makes a server fail to save, so that it refuses writes. A directory is where its file
// should go.
func failToSave(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(srv.Dir(), "taken", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	harness.Must(t, srv, "CONFIG", "SET", "save", "3600 1")
	harness.Must(t, srv, "BGSAVE")
	harness.Eventually(t, "saving fails", func() bool {
		return strings.Contains(harness.Must(t, srv, "INFO", "persistence").(string), "rdb_last_bgsave_status:err")
	})
}
