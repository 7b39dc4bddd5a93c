package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

const (
	retainIdle = 10 * time.Second
	retainTTL  = 3 * time.Second
)

var retains = engine.Options{TTL: 15 * time.Second, Retain: retainIdle, RetainTTL: retainTTL}

// retain uses a lock until it is retained, and returns the last token.
func (h *host) retain(l *engine.Lock) int64 {
	h.t.Helper()
	var token int64
	for range 3 {
		lease := h.must(l.Acquire(h.t.Context()))
		if lease.Token() <= token {
			h.t.Errorf("token %d after %d", lease.Token(), token)
		}
		token = lease.Token()
		sleep(time.Millisecond)
		h.release(lease)
	}
	return token
}

// isHeld fails unless the server has a hold of the mutex, or has none.
func (h *host) isHeld(want bool) {
	h.t.Helper()
	sleep(0)
	in, err := h.Protocol.(*inspector).Protocol.Inspect(h.t.Context(), "n", protocol.Page{Holds: 1})
	if err != nil || (len(in.Holds) > 0) != want {
		h.t.Errorf("held: %v, want %v, %v", !want, want, err)
	}
}

// A name that is used again and again stays with its process: a lease is no request, and has a
// larger token. When nobody has used the name for its time, it is given back.
func TestRetainedLockSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		l := a.mutex(retains)
		token, began := a.retain(l), time.Now()
		for i := range 100 {
			call := l.Acquire
			if i%2 > 0 {
				call = l.Try
			}
			lease := a.must(call(t.Context()))
			if lease.Token() <= token {
				t.Errorf("token %d after %d", lease.Token(), token)
			}
			token = lease.Token()
			sleep(100 * time.Millisecond)
			if err := lease.Release(); err != nil || lease.Err() == nil {
				t.Errorf("released with %v, and then %v", err, lease.Err())
			}
		}
		if sent := append(a.requests(began, "ask"), a.requests(began, "free")...); len(sent) > 0 {
			t.Errorf("sent %+v", sent)
		}
		sleep(retainIdle - time.Millisecond)
		a.isHeld(true)
		sleep(time.Millisecond)
		a.isHeld(false)
		nothingLeft(t, server)
	})
}

// The tokens of a grant are given out once. When there are no more, one request has others.
func TestRetainedLockAsksForTokens(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		l := a.mutex(retains)
		token, began := a.retain(l), time.Now()
		for range 2500 {
			lease := a.must(l.Acquire(t.Context()))
			if lease.Token() <= token {
				t.Fatalf("token %d after %d", lease.Token(), token)
			}
			token = lease.Token()
			<-after(time.Microsecond)
			a.release(lease)
		}
		if asks := len(a.requests(began, "ask")); asks != 2 {
			t.Errorf("%d requests for tokens, want 2", asks)
		}
		sleep(retainIdle)
		if lease := newHost(t, server).lock(engine.Options{}); lease.Token() <= token {
			t.Errorf("the next holder has token %d after %d", lease.Token(), token)
		}
	})
}

// Another process that asks gets in as soon as the message and the release have gone. The name is
// not retained for a while then, and for longer after each recall.
func TestRetainedLockIsRecalled(t *testing.T) {
	for name, ask := range map[string]func(*host) (*engine.Lease, error){
		"a call that waits": func(h *host) (*engine.Lease, error) {
			return h.mutex(engine.Options{}).Acquire(h.t.Context())
		},
		"a call that tries": func(h *host) (*engine.Lease, error) {
			return h.mutex(engine.Options{}).Try(h.t.Context())
		},
		"a group that waits": func(h *host) (*engine.Lease, error) {
			h.lockAll(h.t.Context(), engine.Options{}, "n", "other")
			return nil, nil
		},
	} {
		runBubble(t, name, func(t *testing.T, server *memory.Server) {
			events := make(chan engine.Event, 100)
			b := newHost(t, server)
			a := newHost(t, server, func(c *engine.Config) {
				c.Observe = func(e engine.Event) {
					if e.Kind == engine.Recalled {
						events <- e
					}
				}
			})
			a.setWay(way{there: 2 * time.Millisecond, messages: time.Millisecond})
			l := a.mutex(retains)
			token := a.retain(l)
			asked := time.Now()
			lease, err := ask(b)
			if err != nil || time.Since(asked) > 10*time.Millisecond {
				t.Fatalf("got %v after %v", err, time.Since(asked))
			}
			if lease != nil && lease.Token() <= token {
				t.Errorf("token %d after %d", lease.Token(), token)
			}
			if e := <-events; e.Took != 2*time.Millisecond || e.Err != nil || e.Token != token {
				t.Errorf("told %+v", e)
			}
		})
	}
}

// A lease that is used is not recalled: it is trusted until its release, and then the others get in
// before the goroutines of its process. A call that does not wait asks for as long as a recall may
// take, and is refused.
func TestRetainedLockInUse(t *testing.T) {
	for name, contended := range map[string]bool{"alone": false, "with goroutines that wait": true} {
		runBubble(t, name, func(t *testing.T, server *memory.Server) {
			a, b, c := newHosts(t, server)
			l := a.mutex(retains)
			a.retain(l)
			lease := a.must(l.Acquire(t.Context()))
			sleep(time.Second)
			if contended {
				own := a.startAcquire(t.Context(), l)
				defer func() { a.release(own.await()) }()
			}
			other := b.startLock(t.Context(), engine.Options{})
			var busy *engine.BusyError
			asked := time.Now()
			_, err := c.mutex(engine.Options{}).Try(t.Context())
			if !errors.As(err, &busy) || !busy.Answer.Holder.Retains || time.Since(asked) != 31*time.Millisecond {
				t.Errorf("Try: %v after %v", err, time.Since(asked))
			}
			asked = time.Now()
			_, err = c.mutex(engine.Options{NoRecall: true}).Try(t.Context())
			if err == nil || time.Since(asked) > 0 {
				t.Errorf("Try without a recall: %v after %v", err, time.Since(asked))
			}
			sleep(time.Minute)
			if err := lease.Err(); err != nil || !other.isWaiting() {
				t.Errorf("the lease in use: %v", err)
			}
			released := time.Now()
			a.release(lease)
			b.release(other.await())
			if took := other.at.Sub(released); took > 0 {
				t.Errorf("the other process waited %v after the release", took)
			}
		})
	}
}

// A hold is not retained if another process waits already when it is won, or asks before its
// process learns of it.
func TestRetainedLockOthersWait(t *testing.T) {
	for name, queued := range map[string]bool{"behind": true, "before the answer": false} {
		runBubble(t, name, func(t *testing.T, server *memory.Server) {
			a, b, c := newHosts(t, server)
			l := a.mutex(retains)
			for range 2 {
				a.release(a.must(l.Acquire(t.Context())))
			}
			var first *engine.Lease
			if queued {
				first = b.lock(engine.Options{})
			} else {
				a.setWay(way{back: 10 * time.Millisecond})
			}
			own := a.startAcquire(t.Context(), l)
			other := c.startLock(t.Context(), engine.Options{})
			if queued {
				b.release(first)
			}
			lease := own.await()
			released := time.Now()
			a.release(lease)
			c.release(other.await())
			if took := other.at.Sub(released); took > 0 {
				t.Errorf("the other process waited %v after the release", took)
			}
		})
	}
}

// A name that is used now and then is not retained.
func TestRetainedLockIsUsedSoon(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		for range 5 {
			a.release(a.must(a.mutex(retains).Acquire(t.Context())))
			a.isHeld(false)
			sleep(retainIdle + time.Millisecond)
		}
	})
}

// Two processes that take turns do not hand a retained name to and fro: the pauses grow.
func TestRetainedLockDoesNotThrash(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		began := time.Now()
		for range 1000 {
			for _, h := range []*host{a, b} {
				for range 4 {
					h.release(h.must(h.mutex(retains).Acquire(t.Context())))
				}
				sleep(10 * time.Millisecond)
			}
		}
		if recalls := len(a.requests(began, "recall")) + len(b.requests(began, "recall")); recalls > 20 {
			t.Errorf("%d recalls in 20 s", recalls)
		}
	})
}

// No process enters a hold that it cannot trust, and it need not be told: the next lease comes from
// the server, or does not come (trap 7).
func TestRetainedLockWithoutTrust(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		l := a.mutex(retains)
		a.retain(l)
		a.setWay(silent)
		waits := b.startLock(t.Context(), engine.Options{})
		refused := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := l.Acquire(ctx); err == nil {
				t.Fatal("it entered without trust")
			}
		}
		sleep(retainTTL - margin(retainTTL) - claim/4)
		refused()
		lease := waits.await()
		refused()
		if err := lease.Err(); err != nil {
			t.Fatal(err)
		}
		a.setWay(way{})
		b.release(lease)
		a.release(a.must(l.Acquire(t.Context())))
	})
}

// Without its messages a process learns late, but no later than a retained hold lasts, that another
// asks. A gap in the messages counts as a recall.
func TestRetainedLockMissesARecall(t *testing.T) {
	for name, gap := range map[string]bool{"lost": false, "gap": true} {
		runBubble(t, name, func(t *testing.T, server *memory.Server) {
			a, b := newHost(t, server), newHost(t, server)
			l := a.mutex(retains)
			a.retain(l)
			a.setWay(way{noMessages: true})
			waits, asked := b.startLock(t.Context(), engine.Options{}), time.Now()
			a.setWay(way{})
			if gap {
				a.Gap()
			}
			b.release(waits.await())
			if took := waits.at.Sub(asked); took > retainTTL+time.Second || gap && took > 0 {
				t.Errorf("it waited %v", took)
			}
		})
	}
}

// Readers retain too, with the token of their hold. A writer recalls all of them; another reader
// does not.
func TestRetainedByReaders(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, c := newHosts(t, server)
		rw := func(h *host, shared bool) *engine.Lock {
			return h.NewLock(protocol.Spec{Name: "rw", Kind: protocol.ReadWrite, Shared: shared}, retains)
		}
		for _, h := range []*host{a, b} {
			for range 3 {
				lease := h.must(rw(h, true).Acquire(t.Context()))
				sleep(10 * time.Millisecond)
				h.release(lease)
			}
		}
		began := time.Now()
		one, two := a.must(rw(a, true).Try(t.Context())), a.must(rw(a, true).Acquire(t.Context()))
		a.release(one)
		a.release(two)
		if sent := a.requests(began, "ask"); len(sent) > 0 || one.Token() != two.Token() {
			t.Errorf("sent %+v; tokens %d and %d", sent, one.Token(), two.Token())
		}
		reads := a.must(rw(a, true).Acquire(t.Context()))
		writer := c.startAcquire(t.Context(), rw(c, false))
		late := a.startAcquire(t.Context(), rw(a, true))
		if !writer.isWaiting() || !late.isWaiting() {
			t.Error("a writer beside a reader, or a reader before a writer that waits")
		}
		a.release(reads)
		c.release(writer.await())
		a.release(late.await())
		sleep(retainIdle)
		nothingLeft(t, server)
	})
}

// Only so many names are retained: that which was used least lately is given back.
func TestRetainedLocksAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		for i := range 3 {
			a.retain(a.NewLock(protocol.Spec{Name: fmt.Sprint(i), Kind: protocol.Mutex}, retains))
		}
		sleep(0)
		if names := server.Names("test"); len(names) != 2 {
			t.Errorf("retained: %q", names)
		}
		began := time.Now()
		a.release(a.must(a.NewLock(protocol.Spec{Name: "0", Kind: protocol.Mutex}, retains).Acquire(t.Context())))
		if len(a.requests(began, "ask")) != 1 {
			t.Error("the first name was retained")
		}
	})
}

// A break of a hold that nobody uses is nobody's loss: it is given back.
func TestRetainedLockIsBroken(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		token := a.retain(a.mutex(retains))
		b := protocol.Break{Kind: protocol.Mutex, Token: token, By: "op"}
		if broken, err := a.Break(t.Context(), "n", b); !broken {
			t.Fatal(err)
		}
		nothingLeft(t, server)
	})
}
