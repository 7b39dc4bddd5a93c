package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/redisstore/internal/embedded"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// A sink remembers what it hears, and notices when it is told two things at a time.
type sink struct {
	busy sync.Mutex
	mu   sync.Mutex
	said []string
	bad  bool

	onGap func() // may be nil
}

func (s *sink) Message(channel, payload string) { s.say(channel + ":" + payload) }

func (s *sink) Gap() {
	if s.onGap != nil {
		s.onGap()
	}
	s.say("gap")
}

func (s *sink) say(what string) {
	alone := s.busy.TryLock()
	s.mu.Lock()
	s.bad = s.bad || !alone
	s.said = append(s.said, what)
	s.mu.Unlock()
	if alone {
		s.busy.Unlock()
	}
}

func (s *sink) heard(what string) bool { return s.count(what) > 0 }

func (s *sink) count(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, said := range s.said {
		if said == what {
			n++
		}
	}
	return n
}

func subscription(t *testing.T, rdb redis.UniversalClient) (holdfast.Subscription, *sink) {
	t.Helper()
	s := new(sink)
	sub, err := redisstore.New(rdb).Subscribe(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sub.Close()
		if s.bad {
			t.Error("the sink was called twice at a time")
		}
	})
	return sub, s
}

func add(t *testing.T, sub holdfast.Subscription, channels ...string) {
	t.Helper()
	for _, c := range channels {
		if err := sub.Add(within(t, 10*time.Second), c); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
}

// receivers publishes and returns how many heard it.
func receivers(t *testing.T, srv *redisserver.Server, channel, payload string) int64 {
	t.Helper()
	n, err := srv.Do("PUBLISH", channel, payload)
	if err != nil {
		t.Fatal(err)
	}
	return n.(int64)
}

func TestMessages(t *testing.T) {
	srv := redisserver.Start(t)
	for name, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(name, func(t *testing.T) {
			sub, s := subscription(t, client(t, srv, func(o *redis.Options) { o.Protocol = protocol }))
			add(t, sub, "a", "b", "a")
			if n := receivers(t, srv, "a", "1") + receivers(t, srv, "b", "2") + receivers(t, srv, "c", "3"); n != 2 {
				t.Fatalf("%d received it", n)
			}
			eventually(t, "both messages", func() bool { return s.heard("a:1") && s.heard("b:2") })
			if err := errors.Join(sub.Remove(context.Background(), "a"), sub.Remove(context.Background(), "never")); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a is given up", func() bool { return receivers(t, srv, "a", "4") == 0 })
			add(t, sub, "a")
			receivers(t, srv, "a", "5")
			eventually(t, "the message", func() bool { return s.heard("a:5") })
			if s.heard("gap") {
				t.Error("told of a gap")
			}
		})
	}
}

func TestConcurrentAdds(t *testing.T) {
	srv := redisserver.Start(t)
	sub, _ := subscription(t, client(t, srv))
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			name := fmt.Sprint("c", i%50)
			if err := sub.Add(within(t, 10*time.Second), name); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if n := receivers(t, srv, name, "x"); n != 1 {
				t.Errorf("%s: %d receivers once it was added", name, n)
			}
		})
	}
	all.Wait()
	if n := srv.CommandStats()["subscribe"]; n != 50 {
		t.Errorf("%d SUBSCRIBE for 50 channels", n)
	}
}

func TestGapAfterLoss(t *testing.T) {
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
			sub, s := subscription(t, client(t, srv))
			for i := range 20 {
				add(t, sub, fmt.Sprint("c", i))
			}
			for round := 1; round <= 3; round++ {
				lose(t, srv)
				eventually(t, "a gap", func() bool { return s.count("gap") == round })
				for i := range 20 {
					if n := receivers(t, srv, fmt.Sprint("c", i), "x"); n != 1 {
						t.Fatalf("c%d has %d receivers after the gap was told", i, n)
					}
				}
			}
			add(t, sub, "c0", "new")
			eventually(t, "the messages", func() bool { return s.count("c7:x") == 3 })
		})
	}
}

func TestDeniedChannel(t *testing.T) {
	srv := redisserver.Start(t)
	acl := []any{"ACL", "SETUSER", "few", "reset", "on", ">pw", "resetchannels", "-@all", "+subscribe", "+unsubscribe"}
	if _, err := srv.Do(append(acl, "&ok*")...); err != nil {
		t.Fatal(err)
	}
	sub, s := subscription(t, client(t, srv, func(o *redis.Options) { o.Username, o.Password = "few", "pw" }))
	denied := func(channel string) {
		t.Helper()
		err := sub.Add(within(t, 10*time.Second), channel)
		if err == nil || !strings.HasPrefix(err.Error(), "NOPERM ") {
			t.Fatalf("%s: got %v", channel, err)
		}
	}
	denied("secret")
	add(t, sub, "ok1", "ok2")
	denied("secret")
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if i%2 == 0 {
				add(t, sub, fmt.Sprint("ok", i))
			} else {
				denied(fmt.Sprint("secret", i))
			}
		})
	}
	all.Wait()
	receivers(t, srv, "ok48", "x")
	eventually(t, "the message", func() bool { return s.heard("ok48:x") })

	// Most channels are withdrawn, which ends the connection: the others come back, and then the gap is told.
	var there any
	s.onGap = func() { there, _ = srv.Do("PUBSUB", "NUMSUB", "ok1", "ok2") }
	if _, err := srv.Do(append(acl, "&ok1", "&ok2")...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a gap", func() bool { return s.heard("gap") })
	if fmt.Sprint(there) != "[ok1 1 ok2 1]" {
		t.Errorf("subscribed when the gap was told: %v", there)
	}
	add(t, sub, "ok1", "ok2")
	denied("ok48")
}

func TestAddWithoutServer(t *testing.T) {
	srv := redisserver.Start(t)
	sub, s := subscription(t, client(t, srv))
	srv.Kill()
	began := time.Now()
	if err := sub.Add(within(t, 10*time.Second), "a"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v to say so", took)
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	add(t, sub, "a")
	if s.heard("gap") {
		t.Error("a gap, and nothing was subscribed")
	}
}

func TestAddIsBounded(t *testing.T) {
	srv := redisserver.Start(t)
	sub, _ := subscription(t, client(t, srv))
	add(t, sub, "a")
	srv.Stop()
	defer srv.Continue()
	began := time.Now()
	if err := sub.Add(within(t, 50*time.Millisecond), "b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
	srv.Continue()
	eventually(t, "b is taken back", func() bool {
		list, _ := srv.Do("PUBSUB", "CHANNELS")
		return slices.Equal(list.([]any), []any{"a"})
	})
}

func TestCloseJoins(t *testing.T) {
	srv := redisserver.Start(t)
	for name, prepare := range map[string]func(*testing.T, holdfast.Subscription){
		"unused":     func(*testing.T, holdfast.Subscription) {},
		"channels":   func(t *testing.T, sub holdfast.Subscription) { add(t, sub, "a", "b") },
		"no channel": func(t *testing.T, sub holdfast.Subscription) { add(t, sub, "a"); _ = sub.Remove(t.Context(), "a") },
		"server gone": func(t *testing.T, sub holdfast.Subscription) {
			add(t, sub, "a")
			srv.Kill()
			t.Cleanup(func() { _ = srv.Restart() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := client(t, srv)
			check := noLeak(t)
			sub, err := redisstore.New(rdb).Subscribe(context.Background(), new(sink))
			if err != nil {
				t.Fatal(err)
			}
			prepare(t, sub)
			if err := errors.Join(sub.Close(), sub.Close()); err != nil {
				t.Fatal(err)
			}
			check()
			if err := sub.Add(within(t, time.Second), "a"); !errors.Is(err, redis.ErrClosed) {
				t.Errorf("Add after Close: %v", err)
			}
		})
	}
}

func TestCloseEndsAdd(t *testing.T) {
	srv := redisserver.Start(t)
	sub, _ := subscription(t, client(t, srv))
	add(t, sub, "a")
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
	if err := <-done; !errors.Is(err, redis.ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestNothingIsSentWithoutChannels(t *testing.T) {
	srv := redisserver.Start(t)
	before := srv.CommandsProcessed()
	sub, _ := subscription(t, client(t, srv))
	if n := srv.CommandsProcessed() - before; n != 1 { // that of CommandsProcessed
		t.Fatalf("%d commands for a subscription without channels", n)
	}
	add(t, sub, "a")
	_ = sub.Remove(t.Context(), "a")
	eventually(t, "a is given up", func() bool { return receivers(t, srv, "a", "") == 0 })
}

func TestQuietConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		sub, s := subscription(t, srv.Client())
		add(t, sub, "a")
		commands := srv.Redis.CommandCount
		idle := commands()
		<-time.After(time.Minute)
		if n := commands() - idle; n < 11 || n > 12 {
			t.Errorf("%d commands in a quiet minute, want a ping each 5 s", n)
		}
		if s.heard("gap") {
			t.Error("a gap while all was well")
		}

		_ = sub.Remove(t.Context(), "a")
		synctest.Wait()
		idle = commands()
		<-time.After(time.Hour)
		if n := commands() - idle; n != 0 {
			t.Errorf("%d commands in an hour without channels", n)
		}
		if n := srv.Redis.CurrentConnectionCount(); n != 0 {
			t.Errorf("%d connections after an hour without channels", n)
		}
		add(t, sub, "a")
		if s.heard("gap") {
			t.Error("a gap, and nothing was wanted")
		}
	})
}

func TestHalfOpenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		sub, s := subscription(t, srv.Client())
		add(t, sub, "a", "b")
		began := time.Now()
		srv.DropAnswer("ping") // and all that would come on that connection
		<-time.After(4 * time.Second)
		srv.Redis.Publish("a", "heard")
		for !s.heard("gap") {
			<-time.After(time.Millisecond)
		}
		if took := time.Since(began); took < 14*time.Second || took > 14500*time.Millisecond {
			t.Errorf("the gap was told after %v, want 4 s, 5 s and 5 s", took)
		}
		srv.Redis.Publish("b", "again")
		synctest.Wait()
		if !s.heard("a:heard") || !s.heard("b:again") {
			t.Errorf("heard %q", s.said)
		}
	})
}

func TestNoTightLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.Start(t)
		var dials atomic.Int32
		rdb := srv.Client(func(o *redis.Options) {
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) > 1 {
					return nil, errors.New("no")
				}
				return dial(ctx, network, addr)
			}
		})
		sub, _ := subscription(t, rdb)
		add(t, sub, "a")
		srv.Disconnect()
		<-time.After(time.Hour)
		if n := dials.Load(); n < 100 || n > 3000 {
			t.Errorf("%d attempts in an hour", n)
		}
	})
}
