package pubsubtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/store"
)

// A Backend is what the suite runs on.
type Backend struct {
	// Open makes a store on a client of its own, which the end of the test closes and which sends
	// nothing by itself: as a user with the password "pw", or as everybody where that is empty.
	Open func(t *testing.T, srv *redisserver.Server, user string) store.Store

	// Protocols are the ways in which its client can speak with a server.
	Protocols map[string]func(t *testing.T, srv *redisserver.Server) store.Store
}

// Run runs the suite.
func Run(t *testing.T, b Backend) {
	for name, test := range map[string]func(*testing.T, Backend){
		"messages": messages, "concurrent adds": concurrentAdds, "gap after loss": gapAfterLoss, "denied channel": deniedChannel,
		"add without server": addWithoutServer, "add is bounded": addIsBounded, "close joins": closeJoins, "close ends add": closeEndsAdd,
		"nothing is sent without channels": nothingIsSent,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

func messages(t *testing.T, b Backend) {
	srv := redisserver.Start(t)
	for name, open := range b.Protocols {
		t.Run(name, func(t *testing.T) {
			sub, s := Subscribe(t, open(t, srv))
			Add(t, sub, "a", "b", "a")
			if n := Receivers(t, srv, "a", "1") + Receivers(t, srv, "b", "2") + Receivers(t, srv, "c", "3"); n != 2 {
				t.Fatalf("%d received it", n)
			}
			eventually(t, "both messages", func() bool { return s.Heard("a:1") && s.Heard("b:2") })
			if err := errors.Join(sub.Remove(context.Background(), "a"), sub.Remove(context.Background(), "never")); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a is given up", func() bool { return Receivers(t, srv, "a", "4") == 0 })
			Add(t, sub, "a")
			Receivers(t, srv, "a", "5")
			eventually(t, "the message", func() bool { return s.Heard("a:5") })
			if s.Heard("gap") {
				t.Error("told of a gap")
			}
		})
	}
}

func concurrentAdds(t *testing.T, b Backend) {
	srv := redisserver.Start(t)
	sub, _ := Subscribe(t, b.Open(t, srv, ""))
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			name := fmt.Sprint("c", i%50)
			if err := sub.Add(within(t, patience), name); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if n := Receivers(t, srv, name, "x"); n != 1 {
				t.Errorf("%s: %d receivers once it was added", name, n)
			}
		})
	}
	all.Wait()
	if n := srv.CommandStats()["subscribe"]; n != 50 {
		t.Errorf("%d SUBSCRIBE for 50 channels", n)
	}
}

func gapAfterLoss(t *testing.T, b Backend) {
	for name, lose := range map[string]func(*testing.T, *redisserver.Server){
		"killed": func(t *testing.T, srv *redisserver.Server) {
			if n, err := srv.Do("CLIENT", "KILL", "TYPE", "pubsub"); n != int64(1) {
				t.Fatal(n, err)
			}
		},
		"server restarted": func(t *testing.T, srv *redisserver.Server) {
			if err := srv.Restart(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := redisserver.Start(t)
			sub, s := Subscribe(t, b.Open(t, srv, ""))
			for i := range 20 {
				Add(t, sub, fmt.Sprint("c", i))
			}
			for round := 1; round <= 3; round++ {
				lose(t, srv)
				eventually(t, "a gap", func() bool { return s.Count("gap") == round })
				for i := range 20 {
					if n := Receivers(t, srv, fmt.Sprint("c", i), "x"); n != 1 {
						t.Fatalf("c%d has %d receivers after the gap was told", i, n)
					}
				}
			}
			Add(t, sub, "c0", "new")
			eventually(t, "the messages", func() bool { return s.Count("c7:x") == 3 })
		})
	}
}

func deniedChannel(t *testing.T, b Backend) {
	srv := redisserver.Start(t)
	acl := []any{"ACL", "SETUSER", "few", "reset", "on", ">pw", "resetchannels", "-@all", "+subscribe", "+unsubscribe"}
	if _, err := srv.Do(append(acl, "&ok*")...); err != nil {
		t.Fatal(err)
	}
	sub, s := Subscribe(t, b.Open(t, srv, "few"))
	denied := func(channel string) {
		t.Helper()
		err := sub.Add(within(t, patience), channel)
		if err == nil || !strings.HasPrefix(err.Error(), "NOPERM ") {
			t.Fatalf("%s: got %v", channel, err)
		}
	}
	denied("secret")
	Add(t, sub, "ok1", "ok2")
	denied("secret")
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if i%2 == 0 {
				Add(t, sub, fmt.Sprint("ok", i))
			} else {
				denied(fmt.Sprint("secret", i))
			}
		})
	}
	all.Wait()
	Receivers(t, srv, "ok48", "x")
	eventually(t, "the message", func() bool { return s.Heard("ok48:x") })

	// Most channels are withdrawn, which ends the connection: the others come back, and then the
	// gap is told.
	var there any
	s.OnGap = func() { there, _ = srv.Do("PUBSUB", "NUMSUB", "ok1", "ok2") }
	if _, err := srv.Do(append(acl, "&ok1", "&ok2")...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a gap", func() bool { return s.Heard("gap") })
	if fmt.Sprint(there) != "[ok1 1 ok2 1]" {
		t.Errorf("subscribed when the gap was told: %v", there)
	}
	Add(t, sub, "ok1", "ok2")
	denied("ok48")
}

func addWithoutServer(t *testing.T, b Backend) {
	srv := redisserver.Start(t)
	sub, s := Subscribe(t, b.Open(t, srv, ""))
	srv.Kill()
	began := time.Now()
	if err := sub.Add(within(t, patience), "a"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("took %v to say so", took)
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	Add(t, sub, "a")
	if s.Heard("gap") {
		t.Error("a gap, and nothing was subscribed")
	}
}

func addIsBounded(t *testing.T, b Backend) {
	srv := redisserver.Start(t)
	sub, _ := Subscribe(t, b.Open(t, srv, ""))
	Add(t, sub, "a")
	srv.Stop()
	defer srv.Continue()
	began := time.Now()
	if err := sub.Add(within(t, 50*time.Millisecond), "b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > 4*time.Second { // less than until the connection is given up
		t.Errorf("took %v", took)
	}
	srv.Continue()
	eventually(t, "b is taken back", func() bool {
		answer, _ := srv.Do("PUBSUB", "CHANNELS")
		list, _ := answer.([]any)
		return slices.Equal(list, []any{"a"})
	})
}

func closeJoins(t *testing.T, b Backend) {
	srv := redisserver.Start(t)
	for name, prepare := range map[string]func(*testing.T, wire.Subscription){
		"unused":     func(*testing.T, wire.Subscription) {},
		"channels":   func(t *testing.T, sub wire.Subscription) { Add(t, sub, "a", "b") },
		"no channel": func(t *testing.T, sub wire.Subscription) { Add(t, sub, "a"); _ = sub.Remove(t.Context(), "a") },
		"server gone": func(t *testing.T, sub wire.Subscription) {
			Add(t, sub, "a")
			srv.Kill()
			t.Cleanup(func() { _ = srv.Restart() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := b.Open(t, srv, "")
			left := leak.Watch()
			sub, err := wire.Route(st).Subscribe(context.Background(), new(Sink))
			if err != nil {
				t.Fatal(err)
			}
			prepare(t, sub)
			if err := errors.Join(sub.Close(), sub.Close()); err != nil {
				t.Fatal(err)
			}
			if left := left(); left != "" {
				t.Errorf("goroutines left behind:\n\n%s", left)
			}
			if err := sub.Add(within(t, time.Second), "a"); !errors.Is(err, wire.ErrSubscriptionClosed) {
				t.Errorf("Add after Close: %v", err)
			}
		})
	}
}

func closeEndsAdd(t *testing.T, b Backend) {
	srv := redisserver.Start(t)
	sub, _ := Subscribe(t, b.Open(t, srv, ""))
	Add(t, sub, "a")
	srv.Stop()
	defer srv.Continue()
	done := make(chan error)
	go func() { done <- sub.Add(context.Background(), "b") }()
	select {
	case err := <-done:
		t.Fatalf("got %v from a stopped server", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, wire.ErrSubscriptionClosed) {
		t.Fatalf("got %v", err)
	}
}

func nothingIsSent(t *testing.T, b Backend) {
	srv := redisserver.Start(t)
	store := b.Open(t, srv, "")
	before := srv.CommandsProcessed()
	sub, _ := Subscribe(t, store)
	if n := srv.CommandsProcessed() - before; n != 1 { // that of CommandsProcessed
		t.Fatalf("%d commands for a subscription without channels", n)
	}
	Add(t, sub, "a")
	_ = sub.Remove(t.Context(), "a")
	eventually(t, "a is given up", func() bool { return Receivers(t, srv, "a", "") == 0 })
}
