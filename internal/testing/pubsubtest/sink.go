// Package hearing tests what subscriptions promise over every store, on real servers.
package pubsubtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/store"
)

// A Sink remembers what it hears, and notices when it is told two things at a time.
type Sink struct {
	OnGap func() // before it is noted; may be nil

	busy sync.Mutex
	mu   sync.Mutex
	said []string
	bad  bool
}

// Message implements wire.Sink.
func (s *Sink) Message(channel, payload string) { s.say(channel + ":" + payload) }

// Gap implements wire.Sink.
func (s *Sink) Gap() {
	if s.OnGap != nil {
		s.OnGap()
	}
	s.say("gap")
}

func (s *Sink) say(what string) {
	alone := s.busy.TryLock()
	s.mu.Lock()
	s.bad = s.bad || !alone
	s.said = append(s.said, what)
	s.mu.Unlock()
	if alone {
		s.busy.Unlock()
	}
}

// Heard tells whether it was told: "gap", or a channel and a payload with a colon between.
func (s *Sink) Heard(what string) bool { return s.Count(what) > 0 }

// Count is how often it was told.
func (s *Sink) Count(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, said := range s.said {
		if said == what {
			n++
		}
	}
	return n
}

// Subscribe opens a subscription, which the end of the test closes.
func Subscribe(t *testing.T, st store.Store) (wire.Subscription, *Sink) {
	t.Helper()
	s := new(Sink)
	sub, err := wire.Route(st).Subscribe(context.Background(), s)
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

// Add adds channels, which must not fail.
func Add(t *testing.T, sub wire.Subscription, channels ...string) {
	t.Helper()
	for _, c := range channels {
		if err := sub.Add(within(t, patience), c); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
}

// Receivers publishes and returns how many heard it.
func Receivers(t *testing.T, srv *redisserver.Server, channel, payload string) int64 {
	t.Helper()
	n, err := srv.Do("PUBLISH", channel, payload)
	if err != nil {
		t.Fatal(err)
	}
	return n.(int64)
}

// patience bounds what must happen, on a machine that has much else to do.
const patience = 15 * time.Second

// within is a context that ends with the test, or after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
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
