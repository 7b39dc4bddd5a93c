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

// A resume whose answer was lost is undone: if the servers did not agree on it, the hold that it
// replaced is still trusted. A release, in contrast, gives a hold back for good.
func TestResumeUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, sent := w.client()
		other, _ := w.client()
		frees := make(chan protocol.Free, 100)
		sent.free = func(free protocol.Free) { frees <- free }
		sent.resume = func(func() (protocol.Answer, error)) (protocol.Answer, error) {
			return protocol.Answer{}, errNone
		}
		lease := w.must(other.Mutex("n").Lock(t.Context()))
		if _, err := client.Mutex("n").Resume(t.Context(), lease.Owner(), lease.Token()); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if len(frees) == 0 {
			t.Error("it was not given back")
		}
		for range len(frees) {
			if free := <-frees; !free.Undo {
				t.Errorf("given back, not undone: %+v", free)
			}
		}
		sent.resume = nil
		w.release(w.must(client.Mutex("n").Resume(t.Context(), lease.Owner(), lease.Token())))
		if free := <-frees; free.Undo {
			t.Errorf("a release undoes: %+v", free)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("the lease that was taken over: %v", err)
		}
		w.nothingLeft()
	})
}

// If an answer of a resume is lost, the request is sent again with time of its own, and the caller
// has the hold.
func TestResumeIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, sent := w.client()
		other, _ := w.client()
		requests := 0
		sent.resume = func(send func() (protocol.Answer, error)) (protocol.Answer, error) {
			answer, err := send()
			if requests++; requests < 3 {
				<-time.After(time.Second) // all the time that a request has
				return protocol.Answer{}, errNone
			}
			return answer, err
		}
		lease := w.must(other.Mutex("n").Lock(t.Context()))
		taken := w.must(client.Mutex("n").Resume(t.Context(), lease.Owner(), lease.Token()))
		if err := taken.Check(t.Context()); err != nil || requests != 3 {
			t.Errorf("after %d requests: %v", requests, err)
		}
		w.release(taken)
		if err := lease.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("the lease that was taken over: %v", err)
		}
		w.nothingLeft()
	})
}

// A request without an answer may have ended the hold, even if a later answer says that there is
// no such hold. So the error says that the request may have been applied.
func TestResumeHoldGoneAfterLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, sent := w.client()
		other, _ := w.client()
		lease := w.must(other.Mutex("n").Lock(t.Context()))
		requests := 0
		sent.resume = func(send func() (protocol.Answer, error)) (protocol.Answer, error) {
			if requests++; requests == 1 {
				w.release(lease)
				return protocol.Answer{}, errNone
			}
			return send()
		}
		_, err := client.Mutex("n").Resume(t.Context(), lease.Owner(), lease.Token())
		var store *holdfast.StoreError
		if !errors.As(err, &store) || store.Applied != holdfast.AppliedUnknown || errors.Is(err, holdfast.ErrHeld) || requests != 2 {
			t.Errorf("after %d requests: %v", requests, err)
		}
		if _, err = client.Mutex("n").Resume(t.Context(), lease.Owner(), lease.Token()); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("without a lost answer: %v", err)
		}
		w.nothingLeft()
	})
}

// The former holder's process gives the remainder back one margin after it has ended the lease,
// neither sooner nor when it hears of the resume. Until then code that looks at the lease's context
// may run, and the next waiter must not.
func TestResumeConfirmedAfterTheMargin(t *testing.T) {
	const margin = 15*time.Second/100 + 5*time.Millisecond
	for name, listens := range map[string]bool{"it listens": true, "it does not listen": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				former, sent := w.client()
				client, _ := w.client()
				third, _ := w.client()
				frees := make(chan time.Time, 10)
				sent.free = func(protocol.Free) { frees <- time.Now() }
				if listens {
					busy, cancel := context.WithCancel(t.Context())
					defer cancel()
					w.must(client.Mutex("another").Lock(t.Context()))
					go func() { _, _ = former.Mutex("another").Lock(busy) }()
					synctest.Wait()
				}
				lease := w.must(former.Mutex("n").Lock(t.Context()))
				began := time.Now()
				ctx := lease.Context()
				taken := w.must(client.Mutex("n").Resume(t.Context(), lease.Owner(), lease.Token()))
				w.release(taken)
				next := make(chan time.Time, 1)
				go func() {
					w.release(w.must(third.Mutex("n").Lock(t.Context())))
					next <- time.Now()
				}()
				<-ctx.Done()
				ended := time.Now()
				if told := ended.Sub(began); listens && told > 0 || !listens && told < 4*time.Second {
					t.Errorf("told after %v", told)
				}
				if lost := (*holdfast.LostError)(nil); !errors.As(context.Cause(ctx), &lost) || lost.Reason != holdfast.LossReplaced {
					t.Errorf("got %v", context.Cause(ctx))
				}
				if freed := (<-frees).Sub(ended); freed != margin {
					t.Errorf("given back %v after the end, want %v", freed, margin)
				}
				if in := (<-next).Sub(ended); in < margin {
					t.Errorf("the next was in %v after the end", in)
				}
			})
		})
	}
}

// A process that takes over a hold of its own learns of it at once. A job that is handed on inside
// a process does this.
func TestResumeOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, _ := w.client()
		lease := w.must(client.Mutex("n").Lock(t.Context()))
		began := time.Now()
		taken := w.must(client.Mutex("n").Resume(t.Context(), lease.Owner(), lease.Token()))
		<-lease.Done()
		if told := time.Since(began); told > 0 {
			t.Errorf("told after %v", told)
		}
		w.release(taken)
		w.release(w.must(client.Mutex("n").Lock(t.Context())))
	})
}

// A message proves nothing: the client asks the server, and the lease lives.
func TestResumeForgedMessage(t *testing.T) {
	for name, options := range map[string][]holdfast.Option{"renewed": nil, "fixed": {holdfast.WithoutRenewal()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				client, sent := w.client()
				other, _ := w.client()
				busy := w.must(other.Mutex("another").Lock(t.Context()))
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _, _ = client.Mutex("another").Lock(ctx) }()
				lease := w.must(client.Mutex("n", options...).Lock(t.Context()))
				synctest.Wait()
				looks, frees := sent.renewals.Load(), sent.frees.Load()
				for range 3 {
					sent.sink.Replaced(protocol.ID(lease.Owner()))
				}
				synctest.Wait()
				if asked := sent.renewals.Load() - looks; asked == 0 || asked > 3 {
					t.Errorf("the server was asked %d times", asked)
				}
				if lease.Err() != nil || sent.frees.Load() != frees {
					t.Errorf("%v, %d given back", lease.Err(), sent.frees.Load()-frees)
				}
				w.release(lease)
				cancel()
				w.release(busy)
			})
		})
	}
}
