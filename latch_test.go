package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Trap 17: a missed message costs one pause of looking, and no message at all costs no more. The
// end of a gap in the subscription is as good as a message.
func TestWatcherMissesMessages(t *testing.T) {
	const slow = 6 * time.Second // the longest pause
	loseMessages := func(sent *connection) { sent.mute.Store(true) }
	for name, c := range map[string]struct {
		fault  func(*connection)
		revive bool
		within time.Duration
	}{
		"none":                 {func(*connection) {}, false, 0},
		"lost":                 {loseMessages, false, slow},
		"lost, and then a gap": {loseMessages, true, 0},
		"no permission": {func(sent *connection) {
			sent.on("listen", loseFirst(1<<60, false, newFailure(protocol.Denied, errors.New("no permission"))))
		}, false, 600 * time.Millisecond},
		"and the server is off": {
			func(sent *connection) { loseMessages(sent); sent.on("", loseAll) }, true, 1200 * time.Millisecond},
	} {
		for what, wait := range map[string]func(context.Context, *holdfast.Client) error{
			"latch": func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").Wait(ctx) },
			"election": func(ctx context.Context, c *holdfast.Client) error {
				for _, err := range c.Election("e").Observe(ctx) {
					return err
				}
				return nil
			},
		} {
			runInWorld(t, what+", "+name, func(t *testing.T, w world) {
				client, sent := w.client()
				other, _ := w.client()
				must(t, other.Latch("l").Set(t.Context(), 1))
				if name == "no permission" {
					c.fault(sent)
				}
				done := make(chan error, 1)
				go func() { done <- wait(t.Context(), client) }()
				synctest.Wait() // it waits for a message
				c.fault(sent)
				<-time.After(13 * time.Second)
				must(t, other.Latch("l").CountDown(t.Context()))
				w.must(other.Election("e").TryCampaign(t.Context()))
				synctest.Wait()
				began := time.Now()
				if c.revive {
					sent.on("", nil)
					sent.sink.Gap()
				}
				must(t, <-done)
				if took := time.Since(began); took > c.within {
					t.Errorf("it took %v, want at most %v", took, c.within)
				}
			})
		}
	}
}

// A watcher costs a look every 5 s, whatever happens meanwhile.
func TestWatcherCostsALookEveryFiveSeconds(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		other, _ := w.client()
		must(t, other.Latch("l").Set(t.Context(), 100))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- client.Latch("l").Wait(ctx) }()
		for range 50 {
			<-time.After(time.Minute)
			must(t, other.Latch("l").CountDown(t.Context()))
		}
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if n := sent.count("look"); n < 3600/6 || n > 3600/4+2 {
			t.Errorf("%d looks in an hour", n)
		}
	})
}
