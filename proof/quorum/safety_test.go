package quorum

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
)

// TestValidity: answers take an eighth of the TTL, and trust is counted from the sending all the
// same.
func TestValidity(t *testing.T) {
	r := newRig(t, 3)
	const ttl = 4 * time.Second
	slow := &lag{}
	a, b := r.warm(slow), r.client(holdfast.Config{}, nil)
	slow.set(0, ttl/8)
	first := a.mustLock("x", holdfast.WithTTL(ttl), holdfast.WithoutRenewal())
	second := make(chan error, 1)
	go func() {
		h, err := b.lock("x", harness.Patience)
		if err == nil {
			err = errors.Join(h.Keep(300*time.Millisecond), h.GiveBack(releaseLimit))
		}
		second <- err
	}()
	if err := first.Keep(2 * ttl); err == nil {
		t.Error("a lease that is not renewed was never lost")
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
	r.check()
	slow.all.Wait()
}

// TestForgotten: a master that restarts without what it knew is needed for two majorities (trap
// 44). The ones that know of the hold and the ones that missed it must not let another in before
// the memory of the holder's TTL is over.
func TestForgotten(t *testing.T) {
	for name, snapshot := range map[string]bool{"empty": false,
		"from an old snapshot": true} { // its birth mark comes back, and what was locked since does not
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 5)
			a, b := r.warm(nil), r.warm(nil)
			if snapshot {
				harness.Must(t, r.Masters[2], "SAVE")
			}
			first := r.barely(a, "x")
			r.restart(r.Masters[2])
			lost := make(chan error, 1)
			go func() { lost <- first.Keep(2 * maxTTL) }()
			second := b.mustLock("x")
			if <-lost == nil {
				t.Error("a lease that is not renewed was never lost")
			}
			r.giveBack(second)
			r.whole(b) // in the end, it counts again
			r.check()
		})
	}
}

// barely locks a name at the first three of five masters alone, as the others are away meanwhile.
// The lease is not renewed.
func (r *rig) barely(w *worker, name string) *history.Lease {
	r.Helper()
	for _, away := range r.Masters[3:] {
		away.Stop()
	}
	h := w.mustLock(name, holdfast.WithTTL(maxTTL), holdfast.WithoutRenewal())
	_ = h.Keep(maxTTL/6 + 20*time.Millisecond) // what was sent to those who were away is too late by now
	for _, away := range r.Masters[3:] {
		away.Continue()
	}
	return h
}

// TestTokens: a client that knows of no larger token than time tells proposes one that the masters
// have seen exceeded.
func TestTokens(t *testing.T) {
	r := newRig(t, 3)
	a := r.warm(nil)
	ahead := fmt.Sprintf("%016d", time.Now().Add(time.Hour).UnixMicro()) // what a master says whose clock was ahead
	for _, master := range r.Masters[:2] {
		harness.Must(t, master, "HSET", "proof:{%quorum}", "counts", ahead)
	}
	b := r.client(holdfast.Config{}, nil)
	for _, w := range []*worker{b, a, b, a} {
		r.giveBack(w.mustLock("x"))
	}
	r.check()
}

// TestMajorityGone: three of five killed is refused with the answer of each, within the node
// time-out; brought back without their data they must not count before MaxTTL is over.
func TestMajorityGone(t *testing.T) {
	r := newRig(t, 5)
	a := r.warm(nil)
	held := a.mustLock("held")
	for _, master := range r.Masters[2:] {
		master.Kill()
	}
	refuse := func(what string) *holdfast.QuorumError {
		t.Helper()
		began := time.Now()
		_, err := a.try("x")
		took := time.Since(began)
		var none *holdfast.QuorumError
		if !errors.As(err, &none) || !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrHeld) {
			t.Fatalf("%s: got %v", what, err)
		}
		if limit := maxTTL/6 + 200*time.Millisecond; harness.Measured() && took > limit || none.Need != 3 ||
			len(none.Masters) != 5 {
			t.Errorf("%s: after %v (at most %v): %v", what, took, limit, none)
		}
		return none
	}
	var none *holdfast.QuorumError
	r.until("those that live say so", func() bool { // where they are slow, the refusal does not wait for them
		none = refuse("three killed")
		return none.Masters[0].Err == nil && none.Masters[1].Err == nil
	})
	for i, node := range none.Masters {
		if dead := i >= 2; dead != (node.Err != nil) || dead == node.Counts {
			t.Errorf("killed %v: %v", dead, node)
		}
	}
	if err := held.Keep(2 * maxTTL); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("a lease without a majority: %v", err)
	}
	r.restart(r.Masters[2:]...)
	r.until("a master says that it is young", func() bool { // the client library takes its time to connect again
		none = refuse("three empty")
		for _, node := range none.Masters {
			if node.Err == nil && !node.Counts && node.Why != "" {
				return true
			}
		}
		return false
	})
	t.Logf("three empty: %v", none)
	r.giveBack(a.mustLock("x")) // the birth marks allow it
	r.check()
}

// TestBusyIsNotGone: with two of five away, a lock that another holds is held, not unavailable.
func TestBusyIsNotGone(t *testing.T) {
	r := newRig(t, 5)
	a, b := r.warm(nil), r.warm(nil)
	r.Masters[0].Kill()
	r.Masters[1].Stop()
	h := a.mustLock("x")
	if err := b.answer("x"); !errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("got %v, want ErrHeld", err)
	}
	r.giveBack(h)
	r.Masters[1].Continue()
	r.check()
}

// TestKept: a master that writes every change down knows after kill -9 what it knew, and counts at
// once.
func TestKept(t *testing.T) {
	r := newEmptyRig(t).start(3, "--appendonly", "yes", "--appendfsync", "always").found()
	a, b := r.client(holdfast.Config{TTL: time.Minute}, nil), r.client(holdfast.Config{}, nil)
	h := a.mustLock("x")
	r.restart(r.Masters[1:]...)
	r.until("all answer", func() bool { return h.Check(t.Context()) == nil })
	if err := b.answer("x"); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("got %v, want ErrHeld", err)
	}
	r.until("all are asked", func() bool {
		nodes := r.quorumOf(b)
		for _, node := range nodes {
			if node.Err == nil && !node.Counts {
				t.Fatal(node)
			}
		}
		return !slices.ContainsFunc(nodes, func(n lockinfo.Master) bool { return n.Err != nil })
	})
	r.giveBack(h)
	r.check()
}
