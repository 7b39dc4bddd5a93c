package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// faulty is the connection of one process, with faults.
type faulty struct {
	*memory.Client

	mu      sync.Mutex
	mute    bool          // messages get lost
	denied  bool          // listening is refused
	away    bool          // requests get no answer, and are not carried out
	stalls  bool          // idem, those that can wait until the deadline of their context
	deaf    int           // so many requests are carried out, but their answers get lost
	looks   int           // so many have arrived
	askAlls int           // idem
	late    time.Duration // so long takes the answer of the next request for many
	sink    protocol.Sink
}

func (f *faulty) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

var errNoAnswer = errors.New("no answer")

// fails tells whether a request is lost before it arrives, and whether its answer is lost.
func (f *faulty) fails() (before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	failure := &protocol.Failure{Op: "test", Reason: protocol.NoAnswer, Unknown: true, Err: errNoAnswer}
	switch {
	case f.away:
		return failure, nil
	case f.deaf > 0:
		f.deaf--
		return nil, failure
	}
	return nil, nil
}

// stall waits for the deadline of a request if requests are to stall.
func (f *faulty) stall(ctx context.Context) {
	f.mu.Lock()
	stalls := f.stalls
	f.mu.Unlock()
	if at, ok := ctx.Deadline(); ok && stalls {
		<-time.After(time.Until(at))
	}
}

func (f *faulty) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listening, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.denied {
		return nil, &protocol.Failure{Op: "listen", Reason: protocol.Denied, Err: errors.New("no permission")}
	}
	f.sink = sink
	return f.Client.Listen(ctx, muffled{sink, f})
}

// muffled loses messages while its process is mute.
type muffled struct {
	protocol.Sink
	f *faulty
}

func (m muffled) Nudge(id protocol.ID, after time.Duration) {
	m.f.mu.Lock()
	mute := m.f.mute
	m.f.mu.Unlock()
	if !mute {
		m.Sink.Nudge(id, after)
	}
}

func (f *faulty) Bind(spec protocol.Spec) protocol.Resource {
	return watchedResource{f.Client.Bind(spec), f}
}

type watchedResource struct {
	protocol.Resource
	f *faulty
}

func (r watchedResource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	return r.f.look(func() (protocol.Standing, error) { return r.Resource.Look(ctx, watcher) })
}

func (f *faulty) look(look func() (protocol.Standing, error)) (protocol.Standing, error) {
	f.set(func() { f.looks++ })
	before, after := f.fails()
	if before != nil {
		return protocol.Standing{}, before
	}
	standing, err := look()
	return standing, errors.Join(err, after)
}

func (f *faulty) Renew(ctx context.Context, renewals []protocol.Renewal, done func(int, protocol.Renewed)) {
	if before, _ := f.fails(); before != nil {
		for i := range renewals {
			done(i, protocol.Renewed{Err: before})
		}
		return
	}
	for i := range renewals {
		renewals[i].Resource = renewals[i].Resource.(watchedResource).Resource
	}
	f.Client.Renew(ctx, renewals, done)
}

func (f *faulty) AskAll(ctx context.Context, asks []protocol.Asking) ([]protocol.Answer, error) {
	f.set(func() { f.askAlls++ })
	f.stall(ctx)
	before, after := f.fails()
	if before != nil {
		return nil, before
	}
	for i := range asks {
		asks[i].Resource = asks[i].Resource.(watchedResource).Resource
	}
	answers, err := f.Client.AskAll(ctx, asks)
	if f.late > 0 {
		<-time.After(f.late)
		f.late = 0
	}
	return answers, errors.Join(err, after)
}

func (f *faulty) BindLatch(spec protocol.Spec) protocol.LatchResource {
	return watchedLatch{f.Client.BindLatch(spec), f}
}

type watchedLatch struct {
	protocol.LatchResource
	f *faulty
}

func (r watchedLatch) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	return r.f.look(func() (protocol.Standing, error) { return r.LatchResource.Look(ctx, watcher) })
}

func (r watchedLatch) Set(ctx context.Context, id protocol.ID, count int64, ttl time.Duration, deadline time.Time) (s protocol.Standing, ok bool, err error) {
	before, after := r.f.fails()
	if before != nil {
		return s, false, before
	}
	s, ok, err = r.LatchResource.Set(ctx, id, count, ttl, deadline)
	return s, ok, errors.Join(err, after)
}

func (r watchedLatch) CountDown(ctx context.Context, id protocol.ID, deadline, last time.Time) (s protocol.Standing, err error) {
	r.f.stall(ctx)
	before, after := r.f.fails()
	if before != nil {
		return s, before
	}
	s, err = r.LatchResource.CountDown(ctx, id, deadline, last)
	return s, errors.Join(err, after)
}

// pair runs a test on a fake clock with one client that has faults and one that has none.
func pair(t *testing.T, run func(t *testing.T, f *faulty, one, other *holdfast.Client)) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		f := &faulty{Client: server.Connect("p")}
		open := func(p protocol.Protocol) *holdfast.Client {
			client, err := holdfast.NewOn(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			return client
		}
		run(t, f, open(f), open(server.Connect("p")))
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Trap 17: a missed message costs one pause of looking, and no message at all costs no more. The
// end of a gap in the subscription is as good as a message.
func TestMissedMessages(t *testing.T) {
	const slow = 6 * time.Second // the longest pause
	for name, c := range map[string]struct {
		fault  func(*faulty)
		revive bool
		within time.Duration
	}{
		"none":                  {func(*faulty) {}, false, 0},
		"lost":                  {func(f *faulty) { f.mute = true }, false, slow},
		"lost, and then a gap":  {func(f *faulty) { f.mute = true }, true, 0},
		"no permission":         {func(f *faulty) { f.denied = true }, false, 600 * time.Millisecond},
		"and the server is off": {func(f *faulty) { f.mute, f.away = true, true }, true, 1200 * time.Millisecond},
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
			t.Run(what+", "+name, func(t *testing.T) {
				pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
					must(t, other.Latch("l").Set(t.Context(), 1))
					if name == "no permission" {
						f.set(func() { c.fault(f) })
					}
					done := make(chan error, 1)
					go func() { done <- wait(t.Context(), one) }()
					synctest.Wait() // it waits for a message
					f.set(func() { c.fault(f) })
					<-time.After(13 * time.Second)
					must(t, other.Latch("l").CountDown(t.Context()))
					_, err := other.Election("e").TryCampaign(t.Context())
					must(t, err)
					synctest.Wait()
					began := time.Now()
					if c.revive {
						f.set(func() { f.away = false })
						f.sink.Gap()
					}
					must(t, <-done)
					if took := time.Since(began); took > c.within {
						t.Errorf("it took %v, want at most %v", took, c.within)
					}
				})
			})
		}
	}
}

// A waiter costs a look every 5 s, whatever happens meanwhile.
func TestWatchingCostsLittle(t *testing.T) {
	pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
		must(t, other.Latch("l").Set(t.Context(), 100))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- one.Latch("l").Wait(ctx) }()
		for range 50 {
			<-time.After(time.Minute)
			must(t, other.Latch("l").CountDown(t.Context()))
		}
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if f.looks < 3600/6 || f.looks > 3600/4+2 {
			t.Errorf("%d looks in an hour", f.looks)
		}
	})
}

// Traps 10 and 11: a call counts once, however often its answer is lost.
func TestLatchLostAnswers(t *testing.T) {
	for _, lost := range []int{1, 3} {
		pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
			f.deaf = lost
			must(t, one.Latch("l").Set(t.Context(), 3))
			f.deaf = lost
			must(t, one.Latch("l").CountDown(t.Context()))
			if n, err := other.Latch("l").Count(t.Context()); n != 2 || err != nil {
				t.Errorf("%d lost answers: %d are left, %v", lost, n, err)
			}
		})
	}
}

// If a protocol has no latches, the error says why, and nothing is sent.
func TestNoLatches(t *testing.T) {
	client, err := holdfast.NewOn(memory.New(protocol.Features{NoLatches: "because of the moon"}).Connect("p"), nil)
	must(t, err)
	defer client.Close()
	l := client.Latch("l")
	_, err = l.Count(t.Context())
	for _, err := range []error{err, l.Set(t.Context(), 1), l.CountDown(t.Context()), l.Wait(t.Context())} {
		var failed *holdfast.StoreError
		if !errors.As(err, &failed) || failed.Kind != holdfast.StoreUnsupported || !strings.Contains(err.Error(), "the moon") || errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	}
}

// A call that gets no answer ends with its time, and its error says that it may have been applied.
func TestLatchAway(t *testing.T) {
	pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
		f.away = true
		for what, call := range map[string]func(context.Context) error{
			"Set":       func(ctx context.Context) error { return one.Latch("l").Set(ctx, 1) },
			"CountDown": func(ctx context.Context) error { return one.Latch("l").CountDown(ctx) },
		} {
			began := time.Now()
			err := call(t.Context())
			var failed *holdfast.StoreError
			if !errors.As(err, &failed) || !failed.MayHaveApplied || !errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(began); took > 5*time.Second || took < 3*time.Second {
				t.Errorf("%s took %v", what, took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began = time.Now()
			err = call(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &failed) || !failed.MayHaveApplied {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s took %v of a second", what, took)
			}
		}
	})
}

// A leader that fails to renew is unhealthy until a renewal is confirmed again, or until it no
// longer leads.
func TestElectionCheck(t *testing.T) {
	pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
		election := one.Election("e")
		lease, err := election.Campaign(t.Context())
		must(t, err)
		<-time.After(time.Minute)
		must(t, election.Check())
		f.set(func() { f.away = true })
		<-time.After(6 * time.Second)
		if err := election.Check(); !errors.Is(err, holdfast.ErrUnavailable) || lease.Err() != nil {
			t.Errorf("Check: %v; the lease: %v", err, lease.Err())
		}
		f.set(func() { f.away = false })
		<-time.After(time.Second)
		must(t, election.Check())
		must(t, lease.Err())
		must(t, lease.Release())

		// A leader whose fn does not return after a loss stays unhealthy.
		finish, ended := make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			_ = election.Run(ctx, func(context.Context) error { <-finish; return nil })
		}()
		synctest.Wait()
		f.set(func() { f.away = true })
		<-time.After(time.Minute)
		if err := election.Check(); !errors.Is(err, holdfast.ErrLost) || strings.Contains(err.Error(), "leading") {
			t.Errorf("Check of one that hangs: %v", err)
		}
		f.set(func() { f.away = false })
		if err := election.Check(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Check of one that hangs: %v", err)
		}
		cancel()
		close(finish)
		<-ended
		must(t, election.Check())
	})
}

// A fn that resigns at once does not make its election spin.
func TestElectionRunDoesNotSpin(t *testing.T) {
	pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		terms := 0
		err := one.Election("e").Run(ctx, func(context.Context) error { terms++; return nil })
		if !errors.Is(err, context.DeadlineExceeded) || terms < 50 || terms > 76 {
			t.Errorf("%d terms in a minute, %v", terms, err)
		}
	})
}

// Free names before and after a held name cost a request each, however many names there are.
func TestGroupAroundOneThatIsHeld(t *testing.T) {
	pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprintf("%04d", i)
		}
		held, err := other.Mutex(names[500]).Lock(t.Context())
		must(t, err)
		done := make(chan error, 1)
		go func() {
			lease, err := one.All(names).Lock(t.Context())
			if err == nil {
				err = errors.Join(lease.Check(t.Context()), lease.Release())
			}
			done <- err
		}()
		synctest.Wait()
		for _, name := range []string{names[0], names[499]} {
			if _, err := other.Mutex(name).TryLock(t.Context()); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, held.Release())
		must(t, <-done)
		if f.askAlls != 3 {
			t.Errorf("%d requests for many, want 3", f.askAlls)
		}
	})
}

// Free names cost one request, however many there are. A lost answer leaves nothing held.
func TestGroupRoundTrips(t *testing.T) {
	pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
		names := []string{"a", "b", "c"}
		lease, err := one.All(names).Lock(t.Context())
		must(t, err)
		must(t, lease.Release())
		if f.askAlls != 1 {
			t.Errorf("%d requests", f.askAlls)
		}
		f.deaf = 1
		began := time.Now()
		_, err = one.All(names).TryLock(t.Context())
		var failed *holdfast.StoreError
		if !errors.As(err, &failed) || !failed.MayHaveApplied {
			t.Errorf("got %v", err)
		}
		f.set(func() { f.deaf = 1 })
		lease, err = one.All(names).Lock(t.Context())
		must(t, err)
		must(t, lease.Check(t.Context()))
		must(t, lease.Release())
		lease, err = other.All(names).Lock(t.Context())
		must(t, err)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("what was won without knowing stayed: %v", took)
		}
		must(t, lease.Release())
	})
}

// An answer that comes when its trust is over is no lease. The hold that it won is given back, with
// a min hold or without.
func TestGroupLateAnswer(t *testing.T) {
	pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
		f.late = 16 * time.Second
		_, err := one.All([]string{"a", "b"}, holdfast.WithMinHold(time.Minute), holdfast.WithTTL(15*time.Second)).TryLock(t.Context())
		var failed *holdfast.StoreError
		if !errors.As(err, &failed) || !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		lease, err := other.All([]string{"a", "b"}).TryLock(t.Context())
		must(t, err)
		must(t, lease.Release())
	})
}

// A lease whose parts are renewed together is lost when one renewal after another fails, before any
// part is free.
func TestGroupLostInTime(t *testing.T) {
	pair(t, func(t *testing.T, f *faulty, one, other *holdfast.Client) {
		lease, err := one.All([]string{"a", "b"}).Lock(t.Context())
		must(t, err)
		<-time.After(time.Minute)
		f.set(func() { f.away = true })
		next, err := other.All([]string{"b", "c"}).Lock(t.Context())
		must(t, err)
		if !errors.Is(lease.Err(), holdfast.ErrLost) || leased.Context(lease).Err() == nil {
			t.Errorf("another holds b, and the lease is %v", lease.Err())
		}
		must(t, next.Release())
	})
}

// The error of a group that gave up says how long the group waited for all of its names, not for
// the last name alone.
func TestGroupWaited(t *testing.T) {
	pair(t, func(t *testing.T, _ *faulty, one, other *holdfast.Client) {
		first, err := one.Mutex("a").Lock(t.Context())
		must(t, err)
		_, err = one.Mutex("b").Lock(t.Context())
		must(t, err)
		time.AfterFunc(3*time.Second, func() { _ = first.Release() })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var ended *holdfast.WaitError
		_, err = other.All([]string{"a", "b"}).Lock(ctx)
		if !errors.As(err, &ended) || ended.Name != "b" || ended.Waited != 5*time.Second {
			t.Errorf("got %v, want to have waited 5s for b", err)
		}
	})
}
