package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// Effects run in their order, after the mutex is free, and once.
func TestGuardRunsEffectsUnlocked(t *testing.T) {
	var g guard
	var ran []int
	g.Lock()
	for i := range 3 {
		g.after(func() {
			g.Lock() // it would wait for ever if the mutex were held
			defer g.Unlock()
			ran = append(ran, i)
		})
	}
	if ran != nil {
		t.Errorf("%v ran with the mutex held", ran)
	}
	g.Unlock()
	g.Lock()
	g.Unlock() //nolint:staticcheck // nothing may be left to run
	if !slices.Equal(ran, []int{0, 1, 2}) {
		t.Errorf("%v ran", ran)
	}
}

// A logged fails one downgrade, so that the engine logs that it asks again.
type logged struct {
	*memory.Client
	failures int
}

type loggedResource struct {
	protocol.Resource
	of *logged
}

func (l *logged) Bind(spec protocol.Spec) protocol.Resource {
	return loggedResource{l.Client.Bind(spec), l}
}

func (r loggedResource) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	if r.of.failures++; r.of.failures == 1 {
		return protocol.Answer{}, &protocol.Failure{Op: "downgrade", Name: "n", Reason: protocol.Loading,
			Err: errors.New("loading")}
	}
	return r.Resource.Downgrade(ctx, ask)
}

// A handlerFunc is a slog.Handler of a user.
type handlerFunc func()

func (handlerFunc) Enabled(context.Context, slog.Level) bool    { return true }
func (f handlerFunc) Handle(context.Context, slog.Record) error { f(); return nil }
func (f handlerFunc) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f handlerFunc) WithGroup(string) slog.Handler             { return f }

// A user's log handler may ask a lease about its state: it is not called with the engine's mutex
// held.
func TestDowngradeAgainLogsUnlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		var lease *Lease
		lines := 0
		e := New(&logged{Client: server.Connect("test")}, Config{
			ReleaseTimeout: time.Second,
			Logger:         slog.New(handlerFunc(func() { lines++; lease.Until() })),
			Closed:         errors.New("closed"),
		})
		defer e.Close()
		var err error
		lease, err = e.NewLock(protocol.Spec{Name: "n", Kind: protocol.ReadWrite},
			Options{TTL: time.Minute}).Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Downgrade(t.Context()); err != nil || lines != 1 {
			t.Errorf("%v, %d lines", err, lines)
		}
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	})
}
