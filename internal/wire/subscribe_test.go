package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

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
