package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A slowRig is a client that reports slow waits after 1 s and slow holds after 2 s. The fields are
// read while all goroutines of the bubble wait.
type slowRig struct {
	client *holdfast.Client
	logged bytes.Buffer

	mu           sync.Mutex // guards those below
	waits, holds []holdfast.Event
}

func newSlowRig(w world) *slowRig {
	w.Helper()
	r := &slowRig{}
	r.client, _ = w.clientWith(&holdfast.Config{
		Label: "rig", Logger: slog.New(slog.NewTextHandler(&r.logged, nil)), SlowWait: time.Second,
		SlowHold: 2 * time.Second, Observer: observing(r.observe),
	})
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

// countLines counts the lines of the log that contain a text.
func (r *slowRig) countLines(text string) int { return strings.Count(r.logged.String(), text) }

// checkReported fails if waits or holds were not reported after so many seconds.
func checkReported(t *testing.T, what string, events []holdfast.Event, seconds ...int) {
	t.Helper()
	var got []int
	for _, e := range events {
		got = append(got, int((e.Waited + e.Held).Round(time.Second).Seconds()))
	}
	if !slices.Equal(got, seconds) {
		t.Fatalf("%s were told after %v seconds, want %v", what, got, seconds)
	}
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

// isOfLockFor reports whether a stack begins in lockFor.
func isOfLockFor(e holdfast.Event) bool {
	if len(e.Stack) == 0 {
		return false
	}
	frame, _ := runtime.CallersFrames(e.Stack).Next()
	return strings.HasSuffix(frame.Function, ".lockFor")
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
		runInWorld(t, name, func(t *testing.T, w world) {
			r, leases := newSlowRig(w), 1
			holder, _ := w.clientWith(&holdfast.Config{Label: "rig"})
			if c.same {
				holder, leases = r.client, 2
			}
			go func() { must(t, lockFor(t.Context(), holder, 10*time.Second)) }()
			synctest.Wait()
			granted := time.Now()
			must(t, lockFor(t.Context(), r.client, 5*time.Second, c.options...))
			synctest.Wait()
			checkReported(t, "waits", r.waits, 1, 2, 4, 8)
			last, hold := r.waits[3], r.holds[len(r.holds)-1]
			if last.Holder != "rig" || !last.Since.Equal(granted) || !isOfLockFor(last) || !isOfLockFor(hold) {
				t.Errorf("a wait is told as %+v, and a hold as %+v", last, hold)
			}
			own := slices.DeleteFunc(r.holds, func(e holdfast.Event) bool { return e.Token != hold.Token })
			checkReported(t, "holds", own, 2, 4)
			for text, want := range map[string]int{
				"a caller waits for long": 4, "a wait was long and is over": 1,
				"a lease was long and is over": leases,
			} {
				if got := r.countLines(text); got != want {
					t.Errorf("%q was logged %d times, want %d", text, got, want)
				}
			}
		})
	}
}

// A hold or wait that is not slow is not reported, and neither is anything after its end: by a
// loss, by giving up, or by Close.
func TestSlowEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		r := newSlowRig(w)
		must(t, lockFor(t.Context(), r.client, time.Second))
		synctest.Wait()
		if len(r.waits)+len(r.holds)+r.countLines("long") > 0 {
			t.Errorf("reported %v %v", r.waits, r.holds)
		}
		w.must(r.client.Mutex("m", holdfast.WithMaxHold(3*time.Second)).Lock(t.Context()))
		err := lockFor(t.Context(), r.client, 0, holdfast.WithWait(1500*time.Millisecond))
		if !errors.Is(err, holdfast.ErrWaitOver) {
			t.Error(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		checkReported(t, "waits", r.waits, 1)
		checkReported(t, "holds", r.holds, 2)
		w.must(r.client.Mutex("m").Lock(t.Context()))
		<-time.After(3 * time.Second)
		must(t, r.client.Close())
		<-time.After(time.Minute)
		synctest.Wait()
		checkReported(t, "holds", r.holds, 2, 2)
		if got := r.countLines("a lease was long and is over"); got != 2 {
			t.Errorf("the end of %d holds was told, want 2", got)
		}
	})
}

// A group that polls is reported as waiting for its first name, with the holder that keeps it out.
func TestSlowGroupThatPolls(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		r := newSlowRig(w)
		holder, _ := w.clientWith(&holdfast.Config{Label: "other"})
		go func() { must(t, lockFor(t.Context(), holder, 5*time.Second)) }()
		synctest.Wait()
		group := r.client.All([]string{"a", "m"}, holdfast.WithPolling(100*time.Millisecond, 0))
		lease := w.must(group.Lock(t.Context()))
		<-time.After(3 * time.Second)
		w.release(lease)
		synctest.Wait()
		checkReported(t, "waits", r.waits, 1, 2, 4)
		checkReported(t, "holds", r.holds, 2, 2) // one of each name
		if first := r.waits[0]; first.Name != "a" || first.Holder != "other" {
			t.Errorf("told of %q, held by %q; want a, held by other", first.Name, first.Holder)
		}
	})
}

// A candidate waits for as long as another one leads, and a leader leads as long as it is well:
// neither is slow.
func TestElectionIsNotSlow(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		r := newSlowRig(w)
		leader := w.must(r.client.Election("m").Campaign(t.Context()))
		candidate := make(chan *holdfast.Lease, 1)
		go func() { candidate <- w.must(r.client.Election("m").Campaign(t.Context())) }()
		<-time.After(time.Hour)
		w.release(leader)
		w.release(<-candidate)
		synctest.Wait()
		checkReported(t, "waits", r.waits)
		checkReported(t, "holds", r.holds)
		if n := r.countLines("long"); n > 0 {
			t.Errorf("%d lines in the log", n)
		}
	})
}
