package quorum

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// TestBreak: with two of five masters away a hold can be broken, by a client that has heard of
// nothing. Its holder is told by whom, and nobody gets in before it has released.
func TestBreak(t *testing.T) {
	long(t)
	r := newRig(t, 5)
	a, b, op := r.client(nil, nil), r.client(nil, nil), r.client(func(c *holdfast.Config) { c.Label = "OP" }, nil)
	warm(r, a)
	warm(r, b)
	r.masters[0].Kill()
	r.masters[1].Stop()
	lease, err := a.Mutex("x").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.until("it is broken", func() bool { return op.Break(t.Context(), "x", lease.Token()) == nil })
	<-lease.Done()
	var lost *holdfast.LostError
	if !errors.As(lease.Err(), &lost) || lost.Reason != holdfast.LossBroken || lost.By != "OP" {
		t.Errorf("got %v", lease.Err())
	}
	if _, err := b.answer("x"); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("before the release: %v", err)
	}
	info, err := op.Inspect(t.Context(), "x")
	if err != nil || info.State() != lockinfo.StateBroken || info.Masters[0].Err == nil || info.Masters[1].Err == nil {
		t.Errorf("got %+v, %v", info, err)
	}
	if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("release: %v", err)
	}
	h, err := b.lock("x", patience)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.release(); err != nil {
		t.Error(err)
	}
	r.masters[1].Continue()
	r.check()
}

// TestBreakWithoutAMajority: a Break that only two of five masters answer fails, and says what each
// said. The two make good again what they have ended, and the three that were stopped end nothing
// when they go on. So the holder keeps its lease.
func TestBreakWithoutAMajority(t *testing.T) {
	long(t)
	r := newRig(t, 5)
	a, op := r.client(nil, nil), r.client(nil, nil)
	warm(r, a)
	warm(r, op)
	lease, err := a.Mutex("x").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	everywhere := func() bool {
		for _, master := range r.masters {
			if n, _ := master.Do("HEXISTS", "proof:{%quorum}:x", lease.Owner()); n != int64(1) {
				return false
			}
		}
		return true
	}
	// A majority is enough for Lock. A master without the hold would count against it.
	r.until("all masters have the hold", everywhere)
	for _, master := range r.masters[2:] {
		master.Stop()
	}
	err = op.Break(t.Context(), "x", lease.Token())
	for _, master := range r.masters[2:] {
		master.Continue()
	}
	var none *holdfast.QuorumError
	if !errors.As(err, &none) || !errors.Is(err, holdfast.ErrUnavailable) || len(none.Masters) != 5 {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	r.until("all masters keep the hold", everywhere)
	r.pass(maxTTL + time.Second) // renewals go on
	if err := lease.Err(); err != nil {
		t.Errorf("the holder has lost its lease: %v", err)
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
	r.check()
}

// TestListWithoutAMaster: a master that does not answer costs a list of names nothing.
func TestListWithoutAMaster(t *testing.T) {
	r := newRig(t, 3)
	a := r.client(nil, nil)
	warm(r, a)
	for _, name := range []string{"x", "y", "z"} {
		lease, err := a.Mutex(name).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lease.Release() }()
	}
	r.masters[1].Kill()
	names := map[string]bool{}
	for info, err := range a.List(t.Context(), holdfast.ListOptions{}) {
		if err != nil {
			t.Error(err)
		}
		names[info.Name] = true
	}
	if !names["x"] || !names["y"] || !names["z"] {
		t.Errorf("got %v", names)
	}
}
