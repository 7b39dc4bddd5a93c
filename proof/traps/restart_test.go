package traps_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 14: the server forgets its scripts between acquire and release, and while many lock.
func TestMutexScriptsForgottenAreSentAgain(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	c := harness.Locker(t, srv.Addr(), nil)
	m := c.Mutex("n")
	lease := harness.Lock(t, m)
	harness.Must(t, srv, "SCRIPT", "FLUSH")
	harness.Release(t, lease)
	harness.Free(t, srv, "n")

	stop, flushed := make(chan struct{}), make(chan struct{})
	var flushes atomic.Int64
	go func() {
		defer close(flushed)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = srv.Do("SCRIPT", "FLUSH")
				flushes.Add(1)
			}
		}
	}()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for round := 0; round < 60 || flushes.Load() < 10; round++ {
				m := c.Mutex("n", holdfast.WithStrictOrder())
				if i%2 == 0 {
					m = c.Mutex(fmt.Sprint("own", i))
				}
				lease, err := m.Lock(harness.Within(t, harness.Patience))
				if err == nil {
					err = lease.Release()
				}
				if !harness.LetGo(err) {
					t.Errorf("round %d: %v", round, err)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	<-flushed
}

// Traps 5 and 14: a server that is started again empty, while a lock is held and waited for, has
// forgotten both. The holder is told by its next renewal, and who waits gets in.
func TestLeaseServerStartedEmptyIsLost(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	holder := harness.Lock(t, harness.Locker(t, srv.Addr(), harness.Brief(12*time.Second)).Mutex("n")) // time enough for the restart
	var waiters []*harness.Claimant
	for i := range 3 {
		waiters = append(waiters, harness.Claim(harness.Within(t, harness.Patience), harness.Locker(t, srv.Addr(), nil).Mutex("n")))
		harness.Waiting(t, srv, "n", int64(i+1))
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	harness.Signalled(t, "the holder is told", holder.Done())
	var lost *holdfast.LostError
	if !errors.As(holder.Err(), &lost) || lost.Reason != holdfast.LossGone {
		t.Errorf("Err is %v", holder.Err())
	}
	if err := holder.Release(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("release: %v", err)
	}
	var mu sync.Mutex
	largest := holder.Token()
	in := make(chan struct{}, len(waiters))
	for _, w := range waiters {
		go func() {
			defer func() { in <- struct{}{} }()
			<-w.Done
			if w.Err != nil {
				t.Error(w.Err)
				return
			}
			mu.Lock()
			token, last := w.Lease.Token(), largest
			if w.Lease.Err() != nil { // lost before it was looked at, so that another may have been first
				last = holder.Token()
			}
			if token <= last { // trap 40: tokens grow although the clock key is lost
				t.Errorf("token %d after %d", token, last)
			}
			largest = max(largest, token)
			mu.Unlock()
			_ = w.Lease.Release()
		}()
	}
	for range waiters { // each lets the next in
		harness.Signalled(t, "a waiter gets in", in)
	}
}

// A server that is away for a while, with its data: who waits goes on, and so does a holder that
// still has trust.
func TestLeaseServerAwayForAWhileIsKept(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	holder := harness.Lock(t, harness.Locker(t, srv.Addr(), harness.Brief(time.Minute)).Mutex("n"))
	next := harness.Claim(harness.Within(t, harness.Patience), harness.Locker(t, srv.Addr(), nil).Mutex("n"))
	harness.Waiting(t, srv, "n", 1)
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	harness.Release(t, holder)
	lease := next.Got(t)
	if lease.Token() <= holder.Token() {
		t.Errorf("token %d after %d", lease.Token(), holder.Token())
	}
	harness.HandBack(t, lease)
	harness.Gone(t, srv, "n", harness.Patience)
}
