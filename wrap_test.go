package holdfast_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A wrap counts the requests of a process. It may come between a downgrade and its answer.
type wrap struct {
	protocol.Protocol
	asks, frees, renewals, downgrades atomic.Int64
	lostFrees                         atomic.Int64 // so many releases are carried out, but their answers get lost

	ready     func() error // before the first request
	ask       func()       // before the answer to an ask is heard
	renew     func()       // before a renewal or a look is sent
	downgrade func(n int64, send func() (protocol.Answer, error)) (protocol.Answer, error)
}

type wrapped struct {
	protocol.Resource
	wrap *wrap
}

func (w *wrap) Bind(spec protocol.Spec) protocol.Resource { return wrapped{w.Protocol.Bind(spec), w} }

func (w *wrap) Renew(ctx context.Context, renewals []protocol.Renewal, done func(int, protocol.Renewed)) {
	w.renewals.Add(1)
	if w.renew != nil {
		w.renew()
	}
	inner := append([]protocol.Renewal(nil), renewals...)
	for i := range inner {
		inner[i].Resource = inner[i].Resource.(wrapped).Resource
	}
	w.Protocol.Renew(ctx, inner, done)
}

func (w *wrap) Ready(ctx context.Context, name string) error {
	if w.ready != nil {
		return w.ready()
	}
	return w.Protocol.Ready(ctx, name)
}

func (w *wrap) AskAll(ctx context.Context, asks []protocol.Asking) ([]protocol.Answer, error) {
	w.asks.Add(1)
	inner := append([]protocol.Asking(nil), asks...)
	for i := range inner {
		inner[i].Resource = inner[i].Resource.(wrapped).Resource
	}
	return w.Protocol.AskAll(ctx, inner)
}

func (r wrapped) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	r.wrap.asks.Add(1)
	answer, err := r.Resource.Ask(ctx, ask)
	if r.wrap.ask != nil {
		r.wrap.ask()
	}
	return answer, err
}

func (r wrapped) Free(ctx context.Context, free protocol.Free) (bool, error) {
	r.wrap.frees.Add(1)
	was, err := r.Resource.Free(ctx, free)
	if r.wrap.lostFrees.Add(-1) >= 0 {
		return false, errNone
	}
	return was, err
}

func (r wrapped) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	n := r.wrap.downgrades.Add(1)
	send := func() (protocol.Answer, error) { return r.Resource.Downgrade(ctx, ask) }
	if r.wrap.downgrade == nil {
		return send()
	}
	return r.wrap.downgrade(n, send)
}

// A world is a server in memory, for tests on the fake clock.
type world struct {
	*testing.T
	server *memory.Server
}

func newWorld(t *testing.T) world {
	return world{t, memory.New(protocol.Features{Queue: true, Tokens: true})}
}

// client returns the client of one more process.
func (w world) client() (*holdfast.Client, *wrap) {
	w.Helper()
	between := &wrap{Protocol: w.server.Connect("p")}
	client, err := holdfast.NewOn(between, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := client.Close(); err != nil {
			w.Errorf("Close: %v", err)
		}
	})
	return client, between
}

// must returns the lease of a method that must not fail.
func (w world) must(lease *holdfast.Lease, err error) *holdfast.Lease {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return lease
}

func (w world) release(lease *holdfast.Lease) {
	w.Helper()
	if err := lease.Release(); err != nil {
		w.Errorf("Release: %v", err)
	}
}

// nothingLeft fails if a name is held or has waiters.
func (w world) nothingLeft() {
	w.Helper()
	if names := w.server.Names("p"); len(names) > 0 {
		w.Errorf("left at the server: %q", names)
	}
}
