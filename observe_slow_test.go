package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A slowRig is a client that reports slow waits after 1 s and slow holds after 2 s.
type slowRig struct {
	client *holdfast.Client

	mu     sync.Mutex
	waits  []holdfast.Event
	holds  []holdfast.Event
	logged bytes.Buffer
}

func newSlowRig(t *testing.T, server *memory.Server) *slowRig {
	t.Helper()
	r := &slowRig{}
	var err error
	r.client, err = holdfast.NewOn(server.Connect("p"), &holdfast.Config{
		Label: "rig", Logger: slog.New(slog.NewTextHandler(r, nil)), SlowWait: time.Second, SlowHold: 2 * time.Second,
		Observer: observing(r.observe),
	})
	must(t, err)
	return r
}

func (r *slowRig) observe(e holdfast.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Kind {
	case holdfast.EventSlowWait:
		r.waits = append(r.waits, e)
	case holdfast.EventSlowHold:
		r.holds = append(r.holds, e)
	}
}

func (r *slowRig) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logged.Write(line)
}

// told returns what the observer was told of so far.
func (r *slowRig) told() (waits, holds []holdfast.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.waits), slices.Clone(r.holds)
}

// lines counts the lines of the log that contain a text.
func (r *slowRig) lines(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.logged.String(), text)
}

// times are those of events, rounded to seconds: of waits or of holds.
func times(events []holdfast.Event) (out []time.Duration) {
	for _, e := range events {
		out = append(out, (e.Waited + e.Held).Round(time.Second))
	}
	return out
}

// lockFor gets the name and holds it for so long. Its name stands in the stack of the reports.
func lockFor(ctx context.Context, client *holdfast.Client, held time.Duration, options ...holdfast.Option) error {
	lease, err := client.Mutex("m", options...).Lock(ctx)
	if err != nil {
		return err
	}
	<-time.After(held)
	return lease.Release()
}

func topOf(e holdfast.Event) string {
	if len(e.Stack) == 0 {
		return ""
	}
	frame, _ := runtime.CallersFrames(e.Stack).Next()
	return frame.Function
}

// A long wait and a long hold are told at doubling times, with the stack of the caller, however the
// caller waits.
func TestSlowIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		same    bool // the holder is of the same client
		options []holdfast.Option
	}{
		"in the server's queue": {},
		"in the process":        {same: true},
		"in strict order":       {options: []holdfast.Option{holdfast.WithStrictOrder()}},
		"by polling":            {options: []holdfast.Option{holdfast.WithPolling(100*time.Millisecond, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				r := newSlowRig(t, server)
				holder := r.client
				if !c.same {
					var err error
					holder, err = holdfast.NewOn(server.Connect("p"), &holdfast.Config{Label: "rig"})
					must(t, err)
				}
				go func() { must(t, lockFor(t.Context(), holder, 10*time.Second)) }()
				synctest.Wait()
				granted := time.Now()
				must(t, lockFor(t.Context(), r.client, 5*time.Second, c.options...))
				synctest.Wait()
				waits, holds := r.told()
				if got, want := times(waits),
					[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}; !reflect.DeepEqual(
					got, want) {
					t.Fatalf("waits were told after %v, want %v", got, want)
				}
				last := waits[3]
				if last.Holder != "rig" || !last.Since.Equal(granted) || !strings.HasSuffix(topOf(last), ".lockFor") {
					t.Errorf("the holder is %q since %v, and the caller %s", last.Holder, last.Since, topOf(last))
				}
				var own []holdfast.Event
				for _, e := range holds {
					if e.Token == holds[len(holds)-1].Token {
						own = append(own, e)
					}
				}
				if got, want := times(own),
					[]time.Duration{2 * time.Second, 4 * time.Second}; !reflect.DeepEqual(got, want) {
					t.Errorf("holds were told after %v, want %v", got, want)
				}
				if !strings.HasSuffix(topOf(own[0]), ".lockFor") {
					t.Errorf("the holder's stack begins with %s", topOf(own[0]))
				}
				leases := 1
				if c.same {
					leases = 2
				}
				for text, want := range map[string]int{
					"a caller waits for long": 4, "a wait was long and is over": 1,
					"a lease was long and is over": leases,
				} {
					if got := r.lines(text); got != want {
						t.Errorf("%q was logged %d times, want %d", text, got, want)
					}
				}
				must(t, holder.Close())
				must(t, r.client.Close())
			})
		})
	}
}

// A hold or wait that is not slow is not reported, and neither is anything after its end: by a
// loss, by giving up, or by Close.
func TestSlowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		r := newSlowRig(t, server)
		must(t, lockFor(t.Context(), r.client, time.Second))
		if waits, holds := r.told(); len(waits)+len(holds)+r.lines("long") > 0 {
			t.Errorf("reported %v %v", waits, holds)
		}
		_, err := r.client.Mutex("m", holdfast.WithMaxHold(3*time.Second)).Lock(t.Context())
		must(t, err)
		if err := lockFor(t.Context(), r.client, 0, holdfast.WithWait(1500*time.Millisecond)); !errors.Is(
			err, holdfast.ErrWaitOver) {
			t.Error(err)
		}
		<-time.After(time.Minute)
		if waits, holds := r.told(); len(waits) != 1 || len(holds) != 1 {
			t.Errorf("waits were told after %v and holds after %v, want one each", times(waits), times(holds))
		}
		_, err = r.client.Mutex("m").Lock(t.Context())
		must(t, err)
		<-time.After(3 * time.Second)
		must(t, r.client.Close())
		<-time.After(time.Minute)
		_, holds := r.told()
		if got := r.lines("a lease was long and is over"); len(holds) != 2 || got != 2 {
			t.Errorf("%d holds were told, and the end of %d", len(holds), got)
		}
	})
}

// A group that polls is reported as waiting for its first name, with the holder that keeps it out.
func TestSlowGroupThatPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		r := newSlowRig(t, server)
		holder, err := holdfast.NewOn(server.Connect("p"), &holdfast.Config{Label: "other"})
		must(t, err)
		go func() { must(t, lockFor(t.Context(), holder, 5*time.Second)) }()
		synctest.Wait()
		lease, err := r.client.All([]string{"a", "m"}, holdfast.WithPolling(100*time.Millisecond, 0)).Lock(t.Context())
		must(t, err)
		<-time.After(3 * time.Second)
		must(t, lease.Release())
		synctest.Wait()
		waits, holds := r.told()
		if got, want := times(waits),
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}; !reflect.DeepEqual(got, want) {
			t.Fatalf("waits were told after %v, want %v", got, want)
		}
		if waits[0].Name != "a" || waits[0].Holder != "other" {
			t.Errorf("told of %q, held by %q; want a, held by other", waits[0].Name, waits[0].Holder)
		}
		if got, want := times(holds), []time.Duration{2 * time.Second, 2 * time.Second}; !reflect.DeepEqual(got, want) {
			t.Errorf("holds were told after %v, want one of each name: %v", got, want)
		}
		must(t, holder.Close())
		must(t, r.client.Close())
	})
}

// A candidate waits for as long as another one leads, and a leader leads as long as it is well:
// neither is slow.
func TestElectionIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSlowRig(t, newServer())
		leader, err := r.client.Election("m").Campaign(t.Context())
		must(t, err)
		candidate := make(chan *holdfast.Lease, 1)
		go func() {
			lease, err := r.client.Election("m").Campaign(t.Context())
			must(t, err)
			candidate <- lease
		}()
		<-time.After(time.Hour)
		must(t, leader.Release())
		must(t, (<-candidate).Release())
		must(t, r.client.Close())
		if waits, holds := r.told(); len(waits)+len(holds)+r.lines("long") > 0 {
			t.Errorf("waits were told after %v and holds after %v, with %d lines in the log", times(waits),
				times(holds), r.lines("long"))
		}
	})
}
