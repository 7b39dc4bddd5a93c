package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// testSubscription runs a test with a subscription over a fake store, on the fake clock.
func testSubscription(t *testing.T, f *fakeStore, test func(t *testing.T, s *subscription, n *recordingSink)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(recordingSink)
		s, err := Route(f).Subscribe(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, s.(*subscription), n)
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if err := s.Add(t.Context(), "late"); !errors.Is(err, ErrSubscriptionClosed) {
			t.Errorf("Add after Close: %v", err)
		}
		if left := f.open(); len(left) > 0 {
			t.Errorf("%d connections after Close", len(left))
		}
	})
}

func add(t *testing.T, s *subscription, channels ...string) {
	t.Helper()
	for _, channel := range channels {
		if err := s.Add(t.Context(), channel); err != nil {
			t.Fatalf("%s: %v", channel, err)
		}
	}
}

// onlyListener returns the one open connection.
func onlyListener(t *testing.T, f *fakeStore) *fakeListener {
	t.Helper()
	synctest.Wait()
	open := f.open()
	if len(open) != 1 {
		t.Fatalf("%d connections", len(open))
	}
	return open[0]
}

func passTime(d time.Duration) {
	<-time.After(max(d, 1))
	synctest.Wait()
}

func wantNotes(t *testing.T, n *recordingSink, want string) {
	t.Helper()
	synctest.Wait()
	if got := n.all(); got != want {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// The gap is told when the last channel is there again, and not before.
func TestSubscriptionGapAfterAllChannels(t *testing.T) {
	f := newFake()
	testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
		add(t, s, "a", "b", "a")
		first := onlyListener(t, f)
		first.Message("a", "1")
		f.change(func() {
			f.says = func(_ *fakeListener, channel string) string { return map[string]string{"b": silence}[channel] }
		})
		first.Closed(errors.New("lost"))
		passTime(100 * time.Millisecond)
		second := onlyListener(t, f)
		if second == first {
			t.Fatal("the connection is the old one")
		}
		wantNotes(t, n, "a=1")
		second.Message("a", "2")
		first.Message("a", "late") // what was read before the end
		second.Subscribed("b")
		wantNotes(t, n, "a=1 a=2 a=late gap")
		second.Subscribed("b") // what nobody asked: nothing on this connection can be believed
		passTime(time.Second)
		third := onlyListener(t, f)
		wantNotes(t, n, "a=1 a=2 a=late gap")
		third.Subscribed("b")
		wantNotes(t, n, "a=1 a=2 a=late gap gap")
	})
}

// A channel that is refused leaves the others as they were. A channel that was allowed before is
// asked for again, on another connection, unless permission was taken away.
func TestSubscriptionRefused(t *testing.T) {
	f := newFake()
	refuse := map[string]string{"no": "NOPERM no"}
	f.says = func(_ *fakeListener, channel string) string { return refuse[channel] }
	testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
		add(t, s, "a")
		if err := s.Add(t.Context(), "no"); err == nil || err.Error() != "NOPERM no" {
			t.Errorf("got %v", err)
		}
		add(t, s, "b")
		first := onlyListener(t, f)
		f.change(func() { refuse["a"], refuse["b"] = "NOPERM a", "LOADING" })
		first.Closed(errors.New("lost"))
		passTime(time.Second)
		wantNotes(t, n, "")
		f.change(func() { delete(refuse, "b") })
		passTime(5 * time.Second)
		wantNotes(t, n, "gap")
		f.change(func() { delete(refuse, "a") })
		add(t, s, "a", "b")
	})
}

// A connection is alive as long as the server answers to what was asked, or sends anything.
func TestSubscriptionSilentServer(t *testing.T) {
	f := newFake()
	testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
		add(t, s, "a")
		first := onlyListener(t, f)
		passTime(time.Minute)
		if asks := len(f.asked(first)); asks != 1+12 {
			t.Errorf("%d questions in a quiet minute", asks)
		}
		f.change(func() { f.says = func(*fakeListener, string) string { return silence } })
		passTime(4 * time.Second)
		first.Message("a", "1")
		asks := len(f.asked(first))
		passTime(5*time.Second - 1)
		if len(f.asked(first)) != asks {
			t.Error("asked for a sign of life too soon")
		}
		passTime(5 * time.Second)
		if onlyListener(t, f) != first {
			t.Error("given up too soon")
		}
		f.change(func() { f.says = nil })
		passTime(time.Second)
		if onlyListener(t, f) == first {
			t.Error("a silent connection was kept")
		}
		wantNotes(t, n, "a=1 gap")
	})
}

// A connection without channels is closed, and costs nothing until then.
func TestSubscriptionIdle(t *testing.T) {
	f := newFake()
	testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
		_ = s.Remove(t.Context(), "never")
		if n := len(f.open()); n > 0 {
			t.Errorf("%d connections without channels", n)
		}
		add(t, s, "a")
		l := onlyListener(t, f)
		_ = s.Remove(t.Context(), "a")
		passTime(9 * time.Second)
		if asked := fmt.Sprint(f.asked(onlyListener(t, f))); asked != "[+a -a]" {
			t.Errorf("asked %s", asked)
		}
		add(t, s, "a")
		_ = s.Remove(t.Context(), "a")
		passTime(time.Hour)
		if len(f.open()) != 0 || len(f.asked(l)) != 4 {
			t.Errorf("asked %q", f.asked(l))
		}
		add(t, s, "a")
		wantNotes(t, n, "")
	})
}

// Callers that add one channel at a time cost one question, and each waits for its answer, or for
// Close.
func TestSubscriptionAddByMany(t *testing.T) {
	for _, closes := range []bool{false, true} {
		f := newFake()
		f.says = func(*fakeListener, string) string { return silence }
		testSubscription(t, f, func(t *testing.T, s *subscription, _ *recordingSink) {
			ended := make(chan error, 50)
			for range cap(ended) {
				go func() { ended <- s.Add(t.Context(), "a") }()
			}
			l := onlyListener(t, f)
			if asked := fmt.Sprint(f.asked(l)); asked != "[+a]" || len(ended) > 0 {
				t.Errorf("asked %s, %d calls have ended", asked, len(ended))
			}
			want := ErrSubscriptionClosed
			if closes {
				_ = s.Close()
			} else {
				l.Subscribed("a")
				want = nil
			}
			for range cap(ended) {
				if err := <-ended; !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
		})
	}
}

// A caller whose context ends gives up a channel that no other waits for and that was never there.
func TestSubscriptionAddGivesUp(t *testing.T) {
	f := newFake()
	f.says = func(_ *fakeListener, channel string) string { return map[string]string{"b": silence}[channel] }
	testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
		add(t, s, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Add(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), `channel "b" is not confirmed`) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		l := onlyListener(t, f)
		if asked := fmt.Sprint(f.asked(l)); asked != "[+a +b -b]" {
			t.Errorf("asked %s", asked)
		}
		// An answer to the first question is none to the second.
		done := make(chan error, 1)
		go func() { done <- s.Add(t.Context(), "b") }()
		synctest.Wait()
		l.Subscribed("b")
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("got %v by the answer to another question", err)
		default:
		}
		l.Unsubscribed("b")
		l.Subscribed("b")
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Callers are told the reason if no connection can be made, each at once; attempts without
// callers have pauses.
func TestSubscriptionWithoutServer(t *testing.T) {
	f := newFake("a:1")
	f.cluster, f.owners = true, nil // no node serves anything
	testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
		began := time.Now()
		for _, channel := range []string{"plain", "{b}"} {
			if err := s.Add(t.Context(), channel); err == nil {
				t.Errorf("%s was added", channel)
			}
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		synctest.Wait() // the slots are not being read any more
		f.change(func() { f.owners = []string{"a:1"} })
		s.router.slots.refresh()
		synctest.Wait()
		add(t, s, "plain", "{b}")
		f.change(func() { f.met, f.owners = nil, nil })
		for _, l := range f.open() {
			l.Closed(errors.New("lost"))
		}
		passTime(time.Minute)
		before := len(f.listeners)
		passTime(time.Minute)
		if tries := len(f.listeners) - before; tries > 2*60 {
			t.Errorf("%d attempts in a minute", tries)
		}
	})
}

// A channel with a hash tag is on a connection to the node that serves its slot, and follows it:
// told by the server, by the refusal of a new question, by the slot table, or by the end of the
// connection. Each way the gap is told.
func TestSubscriptionShardedFollowsSlot(t *testing.T) {
	for name, moves := range map[string]func(f *fakeStore, s *subscription, l *fakeListener){
		"the server takes it away": func(_ *fakeStore, _ *subscription, l *fakeListener) { l.Unsubscribed(atA) },
		"the sign of life":         func(*fakeStore, *subscription, *fakeListener) { passTime(6 * time.Second) },
		"the slot table": func(_ *fakeStore, s *subscription, _ *fakeListener) {
			s.router.slots.refresh()
			passTime(recheckEvery)
		},
		"the connection is lost": func(_ *fakeStore, _ *subscription, l *fakeListener) { l.Closed(errors.New("lost")) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake("a:1", "b:1")
			f.says = func(l *fakeListener, channel string) string {
				if l.sharded && strings.HasPrefix(channel, atA) && !slices.Contains(f.owners[:1], l.node) {
					return "MOVED 3300 " + f.owners[0]
				}
				return ""
			}
			testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
				add(t, s, atA, "plain", atB, "{}")
				nodes := map[string]*fakeListener{}
				for _, l := range f.open() {
					nodes[fmt.Sprint(l.node, l.sharded)] = l
				}
				old := nodes["a:1true"]
				if len(f.open()) != 3 || old == nil || nodes["b:1true"] == nil {
					t.Fatalf("connections %v", nodes)
				}
				f.change(func() { f.owners = []string{"b:1", "b:1"} })
				moves(f, s, old)
				passTime(time.Second)
				if asked := f.asked(nodes["b:1true"]); !slices.Contains(asked, "+"+atA) {
					t.Errorf("asked of the new node: %q", asked)
				}
				wantNotes(t, n, "gap")
				nodes["b:1true"].Message(atA, "x")
				wantNotes(t, n, "gap "+atA+"=x")
			})
		})
	}
}

// Servers without sharded channels get channels with a hash tag as the others.
func TestSubscriptionShardedUnknown(t *testing.T) {
	f := newFake("a:1", "b:1")
	f.says = func(l *fakeListener, _ string) string {
		if l.sharded {
			return "ERR unknown command 'SSUBSCRIBE'"
		}
		return ""
	}
	testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
		add(t, s, atA, atB, "plain")
		passTime(time.Minute)
		if l := onlyListener(t, f); l.sharded {
			t.Error("on a sharded connection")
		}
		wantNotes(t, n, "")
	})
}

// A channel that was given up and comes back is confirmed by the answer to the last question alone.
func TestSubscriptionLastQuestionCounts(t *testing.T) {
	f := newFake()
	testSubscription(t, f, func(t *testing.T, s *subscription, n *recordingSink) {
		add(t, s, "a")
		l := onlyListener(t, f)
		f.change(func() { f.says = func(*fakeListener, string) string { return silence } })
		passTime(silentAfter + time.Second) // a sign of life is asked for
		s.post(func() {
			c := s.channels["a"]
			conn := c.conn
			conn.unsubscribe(c)
			conn.attach(c)
		})
		synctest.Wait()
		if asked := fmt.Sprint(f.asked(l)); asked != "[+a +a -a +a]" {
			t.Fatalf("asked %s", asked)
		}
		l.Subscribed("a") // the sign of life
		l.Unsubscribed("a")
		wantNotes(t, n, "")
		l.Subscribed("a")
		wantNotes(t, n, "gap")
	})
}

var errRefused = errors.New("NOPERM no permission")

// A recordingStore is a store whose one subscription notes what is asked of it, and refuses the
// first so many channels.
type recordingStore struct {
	Store

	mu      sync.Mutex
	refuses int
	entries []string
}

func (l *recordingStore) note(entry string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry)
}

func (l *recordingStore) noted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

func (l *recordingStore) Subscribe(context.Context, Sink) (Subscription, error) { return l, nil }

func (l *recordingStore) Add(_ context.Context, channel string) error {
	l.note("add " + channel)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses--; l.refuses >= 0 {
		return errRefused
	}
	return nil
}

func (l *recordingStore) Remove(_ context.Context, channel string) error {
	l.note("remove " + channel)
	return nil
}

func (l *recordingStore) Close() error {
	l.note("close")
	return nil
}

func (l *recordingStore) Message(string, string) {}

func (l *recordingStore) Gap() { l.note("gap") }

func TestSlotChannelsRemoveIdleChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &recordingStore{}
		s := NewSlotChannels(l, time.Second, func(err error) error { return err })
		for _, c := range []struct {
			slot int
			name string
			wait time.Duration
		}{{1, "one", 0}, {1, "one", idleChannelAfter / 2}, {2, "two", idleChannelAfter}, {2, "two", 0}} {
			if _, err := s.Ensure(t.Context(), c.slot, c.name); err != nil {
				t.Fatal(err)
			}
			<-time.After(c.wait)
		}
		want := []string{"add one", "add two", "remove one"}
		if got := l.noted(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestSlotChannelsRefusedTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &recordingStore{refuses: 1}
		s := NewSlotChannels(l, time.Second, func(err error) error { return SubscribeFailure("one", err) })
		if _, err := s.Ensure(t.Context(), 1, "one"); !errors.Is(err, errRefused) {
			t.Errorf("got %v", err)
		}
		began := time.Now()
		if since, err := s.Ensure(t.Context(), 1, "one"); err != nil || since.Before(began) {
			t.Errorf("since %v, error %v", since, err)
		}
	})
}

// The first try is told, and the subscription that follows a failure begins with a gap.
func TestSubscribeRefusedTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &recordingStore{refuses: 2}
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		over := make(chan struct{})
		go func() {
			Subscribe(ctx, l, "channel", l, func(err error) { first <- err })
			close(over)
		}()
		if err := <-first; !errors.Is(err, errRefused) {
			t.Errorf("the first try: %v", err)
		}
		<-time.After(5 * subscribeAgain)
		cancel()
		<-over
		want := []string{"add channel", "close", "add channel", "close", "add channel", "gap", "close"}
		if got := l.noted(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
