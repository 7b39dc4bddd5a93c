package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A group leaves as a whole, or stays as a whole.
func TestGroupDetachesAsAWhole(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		options := engine.Options{TTL: 15 * time.Second}
		group := a.NewGroup([]string{"m", "n"}, protocol.Spec{Kind: protocol.Mutex}, options)
		lease, err := group.Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entered, err := a.mutex(engine.Options{}).Acquire(lease.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lease.Detach(); !errors.Is(err, engine.ErrShared) || lease.Err() != nil {
			t.Errorf("entered: %v, then %v", err, lease.Err())
		}
		a.release(entered)
		all, err := lease.Detach()
		if err != nil || len(all) != 2 {
			t.Fatal(err)
		}
		if !errors.Is(context.Cause(lease.Context()), context.Canceled) || !errors.Is(lease.Err(), engine.ErrNotHeld) {
			t.Errorf("the context ended by %v, Err is %v", context.Cause(lease.Context()), lease.Err())
		}
		sent := time.Now()
		again, err := b.AttachGroup(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(b.requests(sent, "renew")); n != 1 {
			t.Errorf("%d requests", n)
		}
		for name, token := range lease.Tokens() {
			if again.Tokens()[name] != token {
				t.Errorf("the token of %q is %d, want %d", name, again.Tokens()[name], token)
			}
		}
		inner, err := b.mutex(engine.Options{}).Acquire(again.Context())
		if err != nil || inner.Token() != again.Tokens()["n"] {
			t.Errorf("under its context: %v", err)
		}
		b.release(inner)
		sleep(time.Minute)
		if err := again.Release(); err != nil {
			t.Error(err)
		}
		var part *engine.PartError
		_, err = b.AttachGroup(t.Context(), all)
		if checkAttachError(t, err, engine.Gone, ""); !errors.As(err, &part) || part.Name != "m" {
			t.Errorf("which part: %v", err)
		}
	})
}

// An observer that is slow with the end of one part of a group delays no goroutine that waits for
// another part.
func TestGroupDetachSlowObserverDelaysNobody(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		other := newHost(t, server)
		e := engine.New(server.Connect("test"), engine.Config{
			ReleaseTimeout: releaseTimeout, Logger: slog.New(slog.DiscardHandler), Closed: errClosed,
			Cause: func(l engine.Lost) error { return &loss{l} },
			Observe: func(event engine.Event) {
				if event.Kind == engine.Released && event.Name == "a" {
					<-time.After(time.Minute)
				}
			},
		})
		defer e.Close()
		options := engine.Options{TTL: 15 * time.Second}
		spec := protocol.Spec{Name: "b", Kind: protocol.Mutex}
		before := other.try(other.NewLock(spec, options))
		var group *engine.GroupLease
		grouped, in := make(chan error), make(chan error)
		go func() {
			var err error
			group, err = e.NewGroup([]string{"a", "b"}, spec, options).Acquire(t.Context())
			grouped <- err
		}()
		synctest.Wait() // it has a, and waits for b in a pool
		other.release(before)
		if err := <-grouped; err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := e.NewLock(spec, options).Acquire(t.Context())
			in <- err
		}()
		synctest.Wait()
		began := time.Now()
		go func() { _, _ = group.Detach() }()
		if err := <-in; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > options.TTL+askEvery*6/5 {
			t.Errorf("the waiter got in after %v", took)
		}
		sleep(time.Minute)
	})
}
