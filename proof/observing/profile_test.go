package observing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/profholdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A waited is what the samples of a profile add up to.
type waited struct {
	calls  int64
	delay  time.Duration // in whole seconds
	labels string
}

// waits returns the sums of a profile by the innermost function of the stacks, as pprof reads it.
func waits(t *testing.T, p *profholdfast.Profile) map[string]waited {
	t.Helper()
	served, written := httptest.NewRecorder(), bytes.Buffer{}
	p.ServeHTTP(served, nil)
	if n, err := p.WriteTo(&written); err != nil || n != int64(written.Len()) || n == 0 {
		t.Errorf("%d bytes of %d: %v", n, written.Len(), err)
	}
	read, err := profile.Parse(served.Body)
	fatal.If(t, err)
	of := map[string]waited{}
	for _, s := range read.Sample {
		name := s.Location[0].Line[0].Function.Name
		name = name[strings.LastIndex(name, ".")+1:]
		sum := of[name]
		of[name] = waited{sum.calls + s.Value[0], (sum.delay + time.Duration(s.Value[1])).Round(time.Second),
			fmt.Sprint(s.Label)}
	}
	return of
}

// culprit holds the lock for long, and so its other callers wait in it. Innocent does not hold its
// own.
func culprit(t *testing.T, client *holdfast.Client) {
	lease, err := client.Mutex("order:42").Lock(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	<-time.After(time.Minute)
	release(t, lease)
}

func innocent(t *testing.T, client *holdfast.Client) {
	lease, err := client.Mutex("other").Lock(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	release(t, lease)
}

// lock takes a lock with a caller's context.
func lock(ctx context.Context, t *testing.T, client *holdfast.Client, name string) *holdfast.Lease {
	t.Helper()
	lease, err := client.Mutex(name).Lock(ctx)
	fatal.If(t, err)
	return lease
}

func release(t *testing.T, lease *holdfast.Lease) {
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

func TestProfileNamesCulprit(t *testing.T) {
	for name, observer := range map[string]func(*profholdfast.Profile) holdfast.Observer{
		"alone": func(p *profholdfast.Profile) holdfast.Observer { return p },
		"one of several": func(p *profholdfast.Profile) holdfast.Observer {
			return holdfast.Observers(newRig(t).observer, p)
		},
		"called by another": func(p *profholdfast.Profile) holdfast.Observer { return harness.Observer(p.Observe) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := profholdfast.New()
				client := holdfasttest.Start(t).Client(&holdfast.Config{Observer: observer(p),
					Class: func(string) string { return "order" }})
				var work sync.WaitGroup
				for range 3 {
					work.Go(func() { culprit(t, client) })
					work.Go(func() { innocent(t, client) })
				}
				work.Wait()
				got := waits(t, p)
				if want := (waited{2, 3 * time.Minute, "map[class:[order] kind:[mutex]]"}); got["culprit"] != want ||
					got["innocent"].delay != 0 {
					t.Errorf("the profile has %v, want for the culprit %v", got, want)
				}
				delete(got, "culprit")
				if delete(got, "innocent"); len(got) > 0 {
					t.Errorf("the profile has %v beside the callers", got)
				}
			})
		})
	}
}

// inVain waits for a lock until it gives up.
func inVain(t *testing.T, client *holdfast.Client) {
	if _, err := client.Mutex("order", holdfast.WithWait(time.Second)).Lock(t.Context()); !errors.Is(err,
		holdfast.ErrWaitOver) {
		t.Errorf("the wait ended with %v", err)
	}
}

func TestProfileHasWaitsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := profholdfast.New()
		client := holdfasttest.Start(t).Client(&holdfast.Config{Observer: p})
		if got := waits(t, p); len(got) > 0 {
			t.Errorf("an empty profile has %v", got)
		}
		lease := lock(t.Context(), t, client, "order")
		inVain(t, client)
		if _, err := client.Mutex("order").TryLock(t.Context()); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		release(t, lease)
		got, want := waits(t, p), waited{1, time.Second, "map[kind:[mutex]]"}
		if len(got) != 1 || got["inVain"] != want {
			t.Errorf("the profile has %v, want the caller that gave up with %v", got, want)
		}
	})
}

// The memory is bounded, nothing is lost of the sums, and the heaviest samples stay.
func TestProfileIsBounded(t *testing.T) {
	p := profholdfast.New()
	add := func(class string, d time.Duration) {
		p.Observe(holdfast.Event{Kind: holdfast.EventGranted, LockKind: "mutex", Class: class, Contended: true,
			Waited: d})
	}
	add("heavy", time.Hour)
	for i := range 3000 {
		add(fmt.Sprint(i), time.Second)
	}
	var written bytes.Buffer
	if _, err := p.WriteTo(&written); err != nil {
		t.Fatal(err)
	}
	read, err := profile.Parse(&written)
	fatal.If(t, err)
	heavy, calls, delay := 0, int64(0), time.Duration(0)
	for _, s := range read.Sample {
		if s.HasLabel("class", "heavy") {
			heavy++
		}
		calls, delay = calls+s.Value[0], delay+time.Duration(s.Value[1])
	}
	if len(read.Sample) != 1001 || heavy != 1 || calls != 3001 || delay != time.Hour+3000*time.Second {
		t.Errorf("%d samples, %d heavy, of %d calls and %v", len(read.Sample), heavy, calls, delay)
	}
}
