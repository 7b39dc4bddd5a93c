package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/flight"
)

// A shelf is a storage with one value that many processes share. It counts what is done.
type shelf struct {
	t  *testing.T
	mu sync.Mutex

	value    string
	expires  time.Time
	ahead    time.Duration
	reads    int
	computes int
	running  int // under a lease that is trusted

	takes, look time.Duration // compute, and read
	fails       int           // so many computes fail
}

var errCompute = errors.New("compute failed")

func (s *shelf) read(context.Context) (string, flight.State, error) {
	if s.look > 0 {
		<-time.After(s.look)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.value, flight.StateOf(s.expires, s.ahead), nil
}

// compute makes a value that is fresh for a minute. It fails the test if another compute runs whose
// lease is trusted.
func (s *shelf) compute(ctx context.Context, token int64) (string, error) {
	if lease, ok := holdfast.LeaseFrom(ctx); ok && lease.Token() != token {
		s.t.Errorf("token %d, of %v", token, lease)
	}
	s.mu.Lock()
	s.computes++
	n, takes := s.computes, s.takes
	if s.running++; s.running > 1 {
		s.t.Errorf("compute runs %d times", s.running)
	}
	s.mu.Unlock()
	var err error
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	switch {
	case err != nil:
		return "", err
	case n <= s.fails:
		return "", errCompute
	}
	s.value, s.expires = fmt.Sprintf("value %d", n), time.Now().Add(time.Minute)
	return s.value, nil
}

func (s *shelf) do(ctx context.Context, client *holdfast.Client, options ...flight.Option) (string, error) {
	return flight.Do(ctx, client, "n", s.read, s.compute, options...)
}

// counts fails unless so many computes and reads were done.
func (s *shelf) counts(computes, reads int) {
	s.t.Helper()
	if s.mu.Lock(); s.computes != computes || s.reads != reads {
		s.t.Errorf("%d computes and %d reads, want %d and %d", s.computes, s.reads, computes, reads)
	}
	s.mu.Unlock()
}

// wants fails unless a call returned this.
func (s *shelf) wants(want string) func(string, error) {
	return func(value string, err error) {
		s.t.Helper()
		if value != want || err != nil {
			s.t.Errorf("got %q, %v, want %q", value, err, want)
		}
	}
}

func inFlight(t *testing.T, run func(t *testing.T, w world, s *shelf)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w world) {
		run(t, w, &shelf{t: t, takes: time.Second})
		synctest.Wait()
		w.nothingLeft()
	})
}

// One process computes, and all callers of all processes get its value as soon as it is stored,
// with few requests to ask. They read together, and not one after the other.
func TestFlightOneComputesForAll(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		const processes, callers = 300, 3
		s.look = time.Second / 4
		began := time.Now()
		var all sync.WaitGroup
		var connections []*connection
		for range processes {
			client, sent := w.client()
			connections = append(connections, sent)
			for range callers {
				all.Go(func() { s.wants("value 1")(s.do(t.Context(), client)) })
			}
		}
		all.Wait()
		if took := time.Since(began); took != s.takes+3*s.look {
			t.Errorf("all have it after %v", took)
		}
		s.counts(1, processes*2)
		for _, sent := range connections {
			if asks := sent.count("ask"); asks > 3 {
				t.Fatalf("a process asked %d times", asks)
			}
		}
	})
}

// A fresh value costs no request.
func TestFlightFreshCostsNothing(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		client, sent := w.client()
		s.value, s.expires = "old", time.Now().Add(time.Hour)
		s.wants("old")(s.do(t.Context(), client))
		if s.counts(0, 1); sent.total() != 0 {
			t.Errorf("%d requests", sent.total())
		}
	})
}

// After leaders that failed, the calls that wait compute one after the other until one stores, and
// each calls compute at most once. Nobody waits for long, however many there are.
func TestFlightNextComputesAfterFailure(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		const processes = 50
		s.fails = 5
		began := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		failed := 0
		for range processes {
			client, _ := w.client()
			all.Go(func() {
				value, err := s.do(t.Context(), client)
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, errCompute) {
					failed++
				} else {
					s.wants("value 6")(value, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); failed != s.fails || took != 6*s.takes || s.reads > 6*processes {
			t.Errorf("%d failed, in %v, with %d reads", failed, took, s.reads)
		}
	})
}

// A leader that loses its lease stops, and its callers get what the next leader stores.
func TestFlightLeaderLosesItsLease(t *testing.T) {
	for name, lose := range map[string]func(w world, client *holdfast.Client, sent *connection){
		"cut off": func(_ world, _ *holdfast.Client, sent *connection) {
			sent.on("", loseAll)
			sent.mute.Store(true)
			time.AfterFunc(time.Minute, func() { sent.on("", nil) })
		},
		"broken": func(w world, client *holdfast.Client, _ *connection) {
			info, err := client.Inspect(t.Context(), "n")
			must(w.T, err)
			must(w.T, client.Break(t.Context(), "n", info.Holds[0].Token))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, w world, s *shelf) {
				leader, sent := w.client()
				other, _ := w.client()
				s.takes = 40 * time.Second
				var all sync.WaitGroup
				all.Go(func() { s.wants("value 2")(s.do(t.Context(), leader)) })
				synctest.Wait()
				all.Go(func() { s.wants("value 2")(s.do(t.Context(), other)) })
				synctest.Wait()
				lose(w, other, sent)
				all.Wait()
				if s.computes != 2 {
					t.Errorf("%d computes", s.computes)
				}
			})
		})
	}
}

// A call whose lease is lost computes once more, and not a third time. The error says what compute
// returned, and that the lease was lost.
func TestFlightLosesEachLease(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		client, _ := w.client()
		_, err := flight.Do(t.Context(), client, "n", s.read, func(ctx context.Context, token int64) (string, error) {
			if s.computes++; s.computes > 2 {
				return "third", nil
			}
			if err := client.Break(t.Context(), "n", token); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return "late", errCompute
		})
		if !errors.Is(err, errCompute) || !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("got %v", err)
		}
		s.counts(2, 4)
	})
}

// While one refreshes ahead, all others use what is there. A refresh that failed is tried again a
// second later.
func TestFlightRefreshAhead(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		var clients []*holdfast.Client
		for range 5 {
			client, _ := w.client()
			clients = append(clients, client)
		}
		s.value, s.expires, s.ahead, s.fails = "old", time.Now().Add(30*time.Second), 31*time.Second, 1
		useOld := func() {
			for range 3 {
				for _, client := range clients {
					began := time.Now()
					s.wants("old")(s.do(t.Context(), client))
					if took := time.Since(began); took != 0 {
						t.Errorf("took %v", took)
					}
				}
			}
		}
		s.wants("old")(s.do(t.Context(), clients[0]))
		synctest.Wait() // it leads
		useOld()
		<-time.After(s.takes)
		synctest.Wait()
		s.wants("old")(s.do(t.Context(), clients[0])) // its refresh failed just now
		synctest.Wait()
		if s.computes != 1 {
			t.Fatalf("%d computes", s.computes)
		}
		<-time.After(time.Second)
		useOld()
		<-time.After(s.takes)
		synctest.Wait()
		for _, client := range clients {
			s.wants("value 2")(s.do(t.Context(), client))
		}
		if s.computes != 2 {
			t.Errorf("%d computes", s.computes)
		}
	})
}

// A stale value that is being refreshed ahead is waited for.
func TestFlightStaleDuringRefreshAhead(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		client, _ := w.client()
		s.value, s.expires, s.ahead, s.takes = "old", time.Now().Add(time.Second), 30*time.Second, 5*time.Second
		s.wants("old")(s.do(t.Context(), client))
		<-time.After(2 * time.Second)
		s.wants("value 1")(s.do(t.Context(), client))
		if s.computes != 1 {
			t.Errorf("%d computes", s.computes)
		}
	})
}

// While the server is away, a call waits as Lock does.
func TestFlightWaitsForServer(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		client, sent := w.client()
		sent.on("", loseAll)
		time.AfterFunc(time.Minute, func() { sent.on("", nil) })
		s.wants("value 1")(s.do(t.Context(), client))
		sent.on("", loseAll)
		s.expires = time.Time{}
		_, err := s.do(t.Context(), client, flight.WithLock(holdfast.WithWait(time.Second)))
		if !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		sent.on("", nil)
	})
}

// WithFailOpen computes while the server is away, also if it went while the call waited or led. A
// holder that is there is waited for.
func TestFlightFailOpen(t *testing.T) {
	open := func(s *shelf) func(context.Context, int64) (string, error) {
		return func(_ context.Context, token int64) (string, error) {
			return fmt.Sprintf("token %d", token), nil
		}
	}
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		client, sent := w.client()
		other, _ := w.client()
		sent.on("", loseAll)
		s.wants("token 0")(flight.Do(t.Context(), client, "n", s.read, open(s), flight.WithFailOpen()))
		sent.on("", nil)
		lease := w.must(other.RWMutex("n").Lock(t.Context()))
		time.AfterFunc(time.Minute, func() { sent.on("", loseAll) })
		began := time.Now()
		s.wants("token 0")(flight.Do(t.Context(), client, "n", s.read, open(s), flight.WithFailOpen()))
		if took := time.Since(began); took < time.Minute || took > 75*time.Second {
			t.Errorf("took %v", took)
		}
		sent.on("", nil)
		w.release(lease)
		<-time.After(time.Minute)
		s.takes = time.Hour
		time.AfterFunc(time.Minute, func() {
			sent.on("", loseAll)
			s.mu.Lock()
			s.takes = 0
			s.mu.Unlock()
		})
		s.wants("value 2")(s.do(t.Context(), client, flight.WithFailOpen()))
		sent.on("", nil)
		<-time.After(time.Minute)
	})
}

// One caller that leaves ends nobody else's call. The last to leave ends compute, and the next
// caller begins another call.
func TestFlightCallersLeave(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		client, _ := w.client()
		s.takes = time.Minute
		errLeft := errors.New("left")
		var all sync.WaitGroup
		var leave []context.CancelCauseFunc
		for range 3 {
			ctx, cancel := context.WithCancelCause(t.Context())
			leave = append(leave, cancel)
			all.Go(func() {
				_, err := s.do(ctx, client)
				var wait *holdfast.WaitError
				if !errors.As(err, &wait) || !errors.Is(err, context.Canceled) || !errors.Is(err, errLeft) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		leave[0](errLeft)
		leave[1](errLeft)
		synctest.Wait()
		if s.running != 1 {
			t.Fatal("compute ended with one caller")
		}
		leave[2](errLeft)
		all.Wait()
		s.wants("value 2")(s.do(t.Context(), client))
	})
}

// A panic reaches each caller, and the lock is free.
func TestFlightPanics(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		client, _ := w.client()
		for name, stop := range map[string]func(){
			"boom": func() { panic(fmt.Errorf("boom: %w", errCompute)) }, "Goexit": runtime.Goexit,
		} {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					defer func() {
						err, _ := recover().(error)
						if err == nil || !strings.Contains(err.Error(), name) ||
							errors.Is(err, errCompute) != (name == "boom") {
							t.Errorf("recovered %v", err)
						}
					}()
					_, _ = flight.Do(t.Context(), client, "n", s.read, func(context.Context, int64) (string, error) {
						<-time.After(time.Second)
						stop()
						return "", nil
					})
				})
			}
			all.Wait()
		}
		s.wants("value 1")(s.do(t.Context(), client))
	})
}

// The panic of a call whose callers have left ends the program.
func TestFlightPanicsWithoutCallers(t *testing.T) {
	if os.Getenv("HOLDFAST_TEST_PANIC") != "" {
		inFlight(t, func(t *testing.T, w world, s *shelf) {
			client, _ := w.client()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = flight.Do(ctx, client, "n", s.read, func(context.Context, int64) (string, error) {
				<-time.After(time.Minute)
				panic("boom")
			})
			<-time.After(time.Hour)
		})
		return
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFlightPanicsWithoutCallers$")
	again.Env = append(os.Environ(), "HOLDFAST_TEST_PANIC=yes")
	if output, err := again.CombinedOutput(); err == nil || !strings.Contains(string(output), "panic: boom") {
		t.Errorf("%v\n%s", err, output)
	}
}

// WithSharedErrors gives an error to the callers of its process for some time, unless they find a
// fresh value.
func TestFlightSharesErrors(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		client, _ := w.client()
		other, _ := w.client()
		s.fails = 3
		share := flight.WithSharedErrors(time.Minute)
		for _, option := range []flight.Option{nil, nil, share, share, share} {
			if _, err := s.do(t.Context(), client, option); !errors.Is(err, errCompute) {
				t.Errorf("got %v", err)
			}
		}
		s.counts(3, 8)
		s.wants("value 4")(s.do(t.Context(), other, share))
		s.wants("value 4")(s.do(t.Context(), client, share))
		s.expires = time.Time{}
		<-time.After(time.Minute)
		s.wants("value 5")(s.do(t.Context(), client, share))
	})
}

// The errors of read and of the lock are told, and compute is not called.
func TestFlightRefuses(t *testing.T) {
	inFlight(t, func(t *testing.T, w world, s *shelf) {
		client, _ := w.client()
		never := func(context.Context, int64) (string, error) { return "", errors.New("computed") }
		errRead := errors.New("read failed")
		_, err := flight.Do(t.Context(), client, "n", func(context.Context) (string, flight.State, error) {
			return "", flight.Fresh, errRead
		}, never)
		if !errors.Is(err, errRead) {
			t.Errorf("read: %v", err)
		}
		lease := w.must(client.Mutex("n").Lock(t.Context()))
		var refused *holdfast.StoreError
		if _, err := flight.Do(t.Context(), client, "n", s.read, never); !errors.As(err, &refused) ||
			refused.Kind != holdfast.StoreForeign {
			t.Errorf("of another kind: %v", err)
		}
		w.release(lease)
		lease = w.must(client.RWMutex("n").Lock(t.Context()))
		if _, err := flight.Do(t.Context(), client, "n", s.read, never,
			flight.WithLock(holdfast.WithWait(time.Second))); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("held: %v", err)
		}
		w.release(lease)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := flight.Do(over, client, "n", s.read, never); !errors.Is(err, context.Canceled) {
			t.Errorf("over: %v", err)
		}
		var none context.Context
		_, err = flight.Do[string](none, nil, "n", nil, nil, nil, flight.WithSharedErrors(0))
		var bad *holdfast.ArgumentError
		if !errors.As(err, &bad) || len(bad.Problems) != 5 {
			t.Errorf("arguments: %v", err)
		}
		_, err = flight.Do(t.Context(), client, "n", s.read, func(ctx context.Context, _ int64) (string, error) {
			return s.do(ctx, client)
		})
		if !errors.As(err, &bad) {
			t.Errorf("nested: %v", err)
		}
		closed, _ := w.client()
		must(t, closed.Close())
		if _, err := flight.Do(t.Context(), closed, "n", s.read, never); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
