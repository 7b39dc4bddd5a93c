package wire

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

// replying makes a router of a single server whose requests get a reply.
func replying(f *fakeStore) (do func(store.Reply)) {
	var reply store.Reply
	f.answer = func(_ string, commands []store.Command) []store.Reply {
		return slices.Repeat([]store.Reply{reply}, len(commands))
	}
	r := Route(f)
	return func(next store.Reply) {
		reply = next
		r.Do(context.Background(), incr("a"))
	}
}

// renewals returns how often connections were renewed.
func (f *fakeStore) renewals() int {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.renewed)
}

// Connections are renewed once one of them was silent, or led to a server that was replaced, in
// whatever words it says so. What says nothing of the connection renews none.
func TestRenewUselessConnections(t *testing.T) { synctest.Test(t, testRenewUselessConnections) }

func testRenewUselessConnections(t *testing.T) {
	for _, c := range []struct {
		want  int
		reply store.Reply
	}{
		{1, store.Reply{Refused: "READONLY You can't write against a read only replica. script: f64cf22c, on @user_script:1."}},
		{1, store.Reply{Refused: "ERR Error running script (call to f_f64cf22c): @user_script:44: -READONLY You can't write against a read only s."}},
		{1, store.Reply{Refused: "ERR READONLY You can't write against a read only slave"}}, // Pika
		{1, store.Reply{Refused: "-READONLY You can't write against a read only replica."}},
		{1, store.Reply{Refused: "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."}},
		{1, store.Reply{Refused: "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"}},
		{1, store.Reply{Refused: "LOADING Redis is loading the dataset in memory"}},
		{1, store.Reply{Refused: "NOREPLICAS Not enough good replicas to write."}},
		{0, store.Reply{Refused: "OOM command not allowed when used memory > 'maxmemory'."}},
		{0, store.Reply{Refused: "MISCONF Redis is configured to save RDB snapshots"}},
		{0, store.Reply{Refused: "BUSY Redis is busy running a script."}},
		{0, store.Reply{Refused: "NOSCRIPT No matching script."}},
		{0, store.Reply{Refused: "ERR max number of clients reached"}},
		{1, store.Reply{Err: context.DeadlineExceeded}},
		{1, store.Reply{Err: io.EOF}},
		{0, store.Reply{Err: context.DeadlineExceeded, Unsent: true}},
		{0, store.Reply{Err: context.Canceled}},
		{0, store.Reply{Value: "OK"}},
	} {
		f := newFake()
		replying(f)(c.reply)
		if got := f.renewals(); got != c.want {
			t.Errorf("%+v: renewed %d times, want %d", c.reply, got, c.want)
		}
	}
	f := newFake() // the refusal of WAIT alone
	f.answer = func(string, []store.Command) []store.Reply {
		return []store.Reply{{Value: "OK"},
			{Refused: "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"}}
	}
	Route(f).Do(t.Context(), []Request{{Key: "a", Args: []any{"INCR", "a"}, Replicas: 1, ReplicasTimeout: 100}})
	if f.renewals() != 1 {
		t.Error("a WAIT whose master became a replica renews none")
	}
}

// While a server refuses, a young connection is not renewed again, and a state that may be its own
// costs its connections seldom. A request that was sent before the renewal says nothing of the new
// ones.
func TestRenewNotTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		do := replying(f)
		until := func(refused string, d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
				do(store.Reply{Refused: refused})
			}
		}
		until("READONLY You can't write", time.Second)
		if n := f.renewals(); n != 10 {
			t.Errorf("renewed %d times in a second", n)
		}
		until("NOREPLICAS Not enough good replicas", 10*time.Second)
		if n := f.renewals(); n != 12 {
			t.Errorf("renewed %d times in ten seconds", n-10)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.answer = func(string, []store.Command) []store.Reply {
			<-time.After(time.Second)
			return []store.Reply{{Err: context.DeadlineExceeded}}
		}
		r := Route(f)
		for range 3 {
			go r.Do(t.Context(), incr("a"))
		}
		passTime(2 * time.Second)
		if n := f.renewals(); n != 1 {
			t.Errorf("three requests renewed %d times", n)
		}
	})
}

// A request waits for the renewal of its connections, but not for more than half of its own time.
// The request that found them of no use waits for nothing.
func TestRenewHoldsUpTheNextRequest(t *testing.T) {
	for renewal, want := range map[time.Duration]time.Duration{
		5 * time.Millisecond:   5 * time.Millisecond,
		100 * time.Millisecond: 20 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.renewal = renewal
			f.answer = func(string, []store.Command) []store.Reply {
				return []store.Reply{{Err: context.DeadlineExceeded}}
			}
			r := Route(f)
			for _, want := range []time.Duration{0, want} {
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
				defer cancel()
				began := time.Now()
				r.Do(ctx, incr("a"))
				if took := time.Since(began); took != want {
					t.Errorf("a renewal of %v: took %v, want %v", renewal, took, want)
				}
			}
			<-time.After(renewal)
		})
	}
}

// Once the right server answers again, connections for messages that were made before are made
// again, as they may lead to the wrong one. They are left alone otherwise.
func TestRenewConnectionsForMessages(t *testing.T) {
	f := newFake()
	testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
		add(t, s, "a")
		first := onlyListener(t, f)
		var reply store.Reply
		f.answer = func(string, []store.Command) []store.Reply { return []store.Reply{reply} }
		do := func(next store.Reply) {
			reply = next
			s.router.Do(t.Context(), incr("a"))
			passTime(time.Millisecond)
		}
		do(store.Reply{Err: context.DeadlineExceeded})
		do(store.Reply{Value: "OK"})
		do(store.Reply{Refused: "READONLY You can't write"})
		do(store.Reply{Refused: "NOSCRIPT No matching script"}) // as a replica says, too
		if onlyListener(t, f) != first {
			t.Error("made again before the right server answered")
		}
		do(store.Reply{Value: "OK"})
		passTime(100 * time.Millisecond)
		second := onlyListener(t, f)
		if second == first {
			t.Error("not made again")
		}
		wantNotes(t, n, "gap")
		do(store.Reply{Value: "OK"})
		passTime(100 * time.Millisecond)
		if onlyListener(t, f) != second {
			t.Error("made again twice")
		}
	})
}

// A connection for messages that fell silent has others renewed, before the next one is taken from
// among them. One that was lost otherwise has not.
func TestRenewAfterSilentConnectionForMessages(t *testing.T) {
	f := newFake()
	testSubscription(t, f, func(t *testing.T, s *subscription, _ *recordingSink) {
		add(t, s, "a")
		onlyListener(t, f).Closed(errors.New("lost"))
		passTime(100 * time.Millisecond)
		if onlyListener(t, f); f.renewals() != 0 {
			t.Error("renewed after a connection was lost")
		}
		f.change(func() {
			f.says = func(l *fakeListener, _ string) string {
				return map[bool]string{true: silence}[l == f.listeners[1]]
			}
		})
		passTime(2*silentAfter + 100*time.Millisecond)
		if onlyListener(t, f); f.renewals() != 1 {
			t.Errorf("renewed %d times after a silence", f.renewals())
		}
	})
}
