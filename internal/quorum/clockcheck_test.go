package quorum

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// An answer from before this machine stood still comes after that was found out: it says nothing of
// what the clock shows since.
func TestThisMachineStoodStillAndAnOldAnswerIsLate(t *testing.T) {
	servers, all, p, logged := ahead(t)
	late := newOnce()
	all[2].answers(func(op string) error {
		if op == "ask" {
			late.wait()
		}
		return nil
	})
	want(t, "hold", try(t, p.Bind(protocol.Spec{Name: "y", Kind: protocol.Mutex}), 2), protocol.Held)
	<-late.came
	all[2].answers(nil)
	for _, g := range all {
		g.forward(time.Minute)
	}
	want(t, "hold", try(t, p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex}), 1), protocol.Held)
	close(late.goes)
	quiet(t, p) // it was heard
	if _, err := p.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Close(time.Now().Add(10 * time.Second))
	if counts(t, servers) != 3 || logged.count("does not count") != 0 {
		t.Errorf("got %q", logged.texts)
	}
}

// No stop of this machine explains two nodes that are ahead by different times: both were set
// forward, each when it was.
func TestTwoNodesSetForwardByDifferentTimes(t *testing.T) {
	servers, all, p, _ := ahead(t)
	all[0].forward(time.Hour)
	all[1].forward(time.Minute)
	if answer, err := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex}).Ask(t.Context(), ask(1)); err == nil {
		t.Errorf("locked by nodes that may have ended a hold: %+v", answer)
	}
	eventually(t, "they were told", func() bool { return counts(t, servers) == 1 })
}

// Where nobody else answers, nothing is known of the clock that seems to be ahead: the node does
// not count by that answer, and the next is looked at again.
func TestANodeSetForwardAndTheOthersFallSilent(t *testing.T) {
	servers, all, p, _ := ahead(t)
	all[1].forward(time.Minute)
	all[1].set(func(op string) error { // the others have answered by then
		if op == "ask" {
			eventually(t, "the others hold", func() bool {
				return do(t, servers[0], "EXISTS", "q:{%quorum}:x") == int64(1) && do(t, servers[2], "EXISTS", "q:{%quorum}:x") == int64(1)
			})
			all[0].shut()
			all[2].shut()
		}
		return nil
	})
	all[2].answers(func(op string) error {
		if op == "ask" {
			return errShut
		}
		return nil
	})
	if answer, err := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex}).Ask(t.Context(), ask(1)); err == nil {
		t.Errorf("locked by a node that may have ended a hold: %+v", answer)
	}
	all[1].set(nil)
	all[0].set(nil)
	if answer, err := p.Bind(protocol.Spec{Name: "y", Kind: protocol.Mutex}).Ask(t.Context(), ask(2)); err == nil {
		t.Errorf("locked by a node that may have ended a hold: %+v", answer)
	}
	eventually(t, "it was told", func() bool { return counts(t, servers) == 2 })
}

// A check that finds a node's clock in time, because another answer was noted, also finds that the
// node does not count.
func TestANodeSetForwardAndAnotherAnswer(t *testing.T) {
	servers, all, p, _ := ahead(t)
	all[1].forward(time.Hour)
	n := p.nodes[1]
	f, sent, err := n.introduce(time.Now().Add(enough), "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	p.run(func() { _, _ = n.meet(time.Now().Add(enough), "", "") })
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); <-time.After(time.Millisecond) {
		if !n.clock.forward(f.now, f.born, sent, time.Now(), leap) {
			t.Error("in time, and nobody has said that the node does not count")
			break
		}
	}
	n.mu.Unlock()
	eventually(t, "it was told", func() bool { return counts(t, servers) == 2 })
}

// The lead that all clocks seemed to have was forgotten between an answer that showed it and the
// check: there is nothing to check.
func TestAnAnswerJustBeforeTheEndOfAnInquiry(t *testing.T) {
	_, all, p, _ := ahead(t)
	for _, g := range all {
		g.forward(time.Minute)
	}
	n := p.nodes[2]
	f, sent, err := n.introduce(time.Now().Add(enough), "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	received := time.Now()
	if !n.clock.forward(f.now, f.born, sent, received, leap) {
		t.Fatal("in time")
	}
	if _, err := p.nodes[0].meet(time.Now().Add(enough), "", ""); err != nil {
		t.Fatal(err)
	}
	if q := p.startClockCheck(n, func() time.Duration { return n.clock.lead(f.now, f.born, sent, received, leap) }); q != nil {
		t.Error("accused")
	}
}

// A try takes no longer than its deadline, also while the others are asked whose clock is wrong.
func TestAnInquiryIsNoLongerThanTheAsk(t *testing.T) {
	servers, all, p, _ := ahead(t)
	all[1].forward(time.Minute)
	silent := make(chan struct{})
	all[2].set(func(op string) error { // it does not answer
		if op == "node" {
			<-silent
		}
		return errShut
	})
	hurried := ask(1)
	hurried.Deadline = time.Now().Add(3 * time.Second) // what comes later than that is not carried out
	answered := make(chan error, 1)
	go func() {
		_, err := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex}).Ask(t.Context(), hurried)
		answered <- err
	}()
	select {
	case err := <-answered:
		if err == nil {
			t.Error("locked by a node that may have ended a hold")
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for the check")
	}
	close(silent)
	eventually(t, "it was told", func() bool { return counts(t, servers) == 2 })
}

// A prompt is a master that answers at once, on a fake clock, grants all, and counts.
type prompt struct {
	wire.Store
	ahead time.Duration
	born  time.Time
	told  atomic.Bool // that it counts no more
}

// Do implements wire.Store.
func (s *prompt) Do(_ context.Context, requests []wire.Request) []wire.Reply {
	<-time.After(time.Microsecond) // a fake clock stands still while a client asks again
	replies := make([]wire.Reply, len(requests))
	for i, r := range requests {
		head := wire.Digits16(time.Now().Add(s.ahead).UnixMicro()) + wire.Digits16(s.born.UnixMicro()) + nameless + "1"
		switch r.Args[1] {
		case digests["node"]:
			if r.Args[6] == "a" {
				s.told.Store(true)
			}
			replies[i].Value = "N" + head + wire.Digits16(0) + "1000"
		case digests["ask"]:
			replies[i].Value = "H" + head + r.Args[15].(string) + r.Args[14].(string) + r.Args[15].(string)
		default:
			replies[i].Value = "1"
		}
	}
	return replies
}

// A clock of ours that runs too slowly for a while, as while it is slewed back, finds one node
// after the other ahead, and the next nearly so. An answer that is late by as much as is missing
// shows nothing, so all come at once.
func TestThisMachineIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers []wire.Store
		var all []*prompt
		for range 3 {
			s := &prompt{born: time.Now().Add(-time.Hour)}
			servers, all = append(servers, s), append(all, s)
		}
		logged := &words{Handler: slog.NewTextHandler(io.Discard, nil)}
		p := New(servers, Config{Prefix: usual, Process: string(id(78)), MaxTTL: time.Minute, Logger: slog.New(logged)})
		want(t, "all are met", try(t, p.Bind(protocol.Spec{Name: "warm", Kind: protocol.Mutex}), 9), protocol.Held)
		<-time.After(time.Second)
		synctest.Wait() // the third has answered
		all[0].ahead, all[1].ahead, all[2].ahead = leap-5*time.Millisecond, leap+15*time.Millisecond, leap-5*time.Millisecond
		want(t, "hold", try(t, p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex}), 1), protocol.Held)
		p.Close(time.Now().Add(10 * time.Second))
		if all[0].told.Load() || all[1].told.Load() || all[2].told.Load() || logged.count("does not count") != 0 {
			t.Errorf("got %q", logged.texts)
		}
	})
}
