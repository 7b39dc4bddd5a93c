package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// Detach waits until an ask whose connection broke can arrive no more. Otherwise that ask would win
// the hold again after its release, for nobody.
func TestDetachWaitsForALateAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		a, b := newProcess(t, server), newProcess(t, server)
		l := a.Lock(protocol.Spec{Name: "n", Kind: protocol.Mutex}, Options{TTL: 15 * time.Second, Strict: true})
		a.wire.lead(func(_ context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error) {
			a.wire.open() // for the next ask
			time.AfterFunc(900*time.Millisecond, func() { _, _ = r.Ask(context.Background(), ask) })
			return protocol.Answer{}, &protocol.Failure{Op: "ask", Reason: protocol.Unreachable, Unknown: true,
				Err: errors.New("broken")}
		})
		asked := time.Now()
		lease, err := l.Acquire(t.Context())
		if err != nil || time.Since(asked) > 500*time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(asked))
		}
		all, err := lease.Detach()
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.Attach(t.Context(), all[0])
		if err != nil {
			t.Fatal(err)
		}
		b.release(again)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if names := server.Names("test"); len(names) > 0 {
			t.Errorf("%q are held", names)
		}
	})
}

// A hold without renewal that was prolonged all the same takes the longer time along, from process
// to process.
func TestDetachFixedProlonged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, drift = 30 * time.Second, time.Second
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		a, b := newProcess(t, server), newProcess(t, server)
		granted := time.Now()
		lease, err := a.Lock(protocol.Spec{Name: "n", Kind: protocol.Mutex},
			Options{TTL: ttl, Fixed: true}).Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var end time.Time
		for range 3 {
			<-time.After(20 * time.Second)
			a.prolong(lease)
			end = time.Now().Add(ttl - margin(ttl))
			<-time.After(5 * time.Second)
			for range 2 {
				all, err := lease.Detach()
				if err != nil {
					t.Fatal(err)
				}
				a, b = b, a
				if lease, err = a.Attach(t.Context(), all[0]); err != nil {
					t.Fatalf("after %v: %v", time.Since(granted), err)
				}
				if until := lease.Until(); until.After(end) || until.Before(end.Add(-drift)) {
					t.Errorf("after %v trusted until %v, want some %v", time.Since(granted), until.Sub(granted),
						end.Sub(granted))
				}
				end = lease.Until()
			}
		}
		a.release(lease)
	})
}

// prolong renews a hold that is not renewed.
func (p *process) prolong(lease *Lease) {
	p.Helper()
	h, now := lease.tenure.hold, time.Now()
	ttl := h.lock.options.TTL
	p.protocol.Renew(p.Context(), []protocol.Renewal{h.renewalRequest()}, func(_ int, r protocol.Renewed) {
		if !r.Held || r.Err != nil {
			p.Fatalf("%+v", r)
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	h.confirm(now, ttl)
	p.holds.update(h)
}
