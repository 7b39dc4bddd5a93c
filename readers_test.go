package holdfast_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

const (
	slice    = 5 * time.Millisecond
	thousand = 1000
)

// Readers that come at once cost what one reader costs.
func TestReadersCostWhatOneDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, sent := w.client()
		leases := make([]*holdfast.Lease, thousand)
		var all sync.WaitGroup
		for i := range leases {
			all.Go(func() { leases[i] = w.must(client.RWMutex("n").RLock(t.Context())) })
		}
		all.Wait()
		<-time.After(time.Minute) // renewed every 5 s
		for _, lease := range leases {
			if lease.Token() != leases[0].Token() {
				t.Fatalf("token %d beside %d", lease.Token(), leases[0].Token())
			}
			w.release(lease)
		}
		if asks, frees, renewals := sent.asks.Load(), sent.frees.Load(), sent.renewals.Load(); asks != 1 || frees != 1 || renewals > 13 {
			t.Errorf("%d asked, %d gave back, %d renewals, for %d readers", asks, frees, renewals, thousand)
		}
		w.nothingLeft()
	})
}

// A stream of readers costs one ask and one free for each slice, however many readers there are.
func TestReadersCostOneASlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, sent := w.client()
		const lasts = 500 * time.Millisecond
		began := time.Now()
		var all sync.WaitGroup
		reads := make([]int, thousand)
		for i := range thousand {
			all.Go(func() {
				for time.Since(began) < lasts {
					lease := w.must(client.RWMutex("n").RLock(t.Context()))
					<-time.After(time.Duration(1+i%7) * time.Millisecond)
					w.release(lease)
					reads[i]++
				}
			})
		}
		all.Wait()
		slices := int64(time.Since(began)/slice) + 1
		if asks, frees := sent.asks.Load(), sent.frees.Load(); asks > 1+slices || frees > 1+slices || asks < slices/2 {
			t.Errorf("%d asked, %d gave back in %d slices", asks, frees, slices)
		}
		total := 0
		for _, n := range reads {
			total += n
		}
		t.Logf("%d reads: %d asked, %d gave back in %d slices", total, sent.asks.Load(), sent.frees.Load(), slices)
		if total < 50*thousand {
			t.Errorf("%d reads", total)
		}
		w.nothingLeft()
	})
}

// Trap 23: a writer waits for the readers that read when it came, and at most a slice for later
// readers, of its own process and of another. Then the readers wait for the writer.
func TestWriterWaitsASlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one, _ := w.client()
		other, _ := w.client()
		const lasts, longest = 300 * time.Millisecond, 7 * time.Millisecond
		began := time.Now()
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				for time.Since(began) < lasts {
					lease := w.must([]*holdfast.Client{one, other}[i%2].RWMutex("n").RLock(t.Context()))
					<-time.After(time.Duration(1+i%7) * time.Millisecond)
					w.release(lease)
				}
			})
		}
		third, _ := w.client()
		for _, writer := range []*holdfast.Client{one, third, other, third} {
			<-time.After(20 * time.Millisecond)
			asked := time.Now()
			lease := w.must(writer.RWMutex("n").Lock(t.Context()))
			if waited := time.Since(asked); waited > slice+longest {
				t.Errorf("a writer waited %v, readers last %v, a slice %v", waited, longest, slice)
			}
			w.release(lease)
		}
		all.Wait()
	})
}

// A reader that waits when a hold of its process is downgraded enters beside it, even if the answer
// to the reader's own request is slow. A waiting reader enters, whatever the age of the hold.
func TestSlowReaderJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one, sent := w.client()
		other, _ := w.client()
		lease := w.must(one.RWMutex("n").Lock(t.Context()))
		var all sync.WaitGroup
		all.Go(func() { w.release(w.must(other.RWMutex("n").Lock(t.Context()))) })
		synctest.Wait()
		sent.ask = func() { <-time.After(20 * slice) }
		all.Go(func() {
			reader := w.must(one.RWMutex("n").RLock(t.Context()))
			if reader.Token() != lease.Token() {
				t.Errorf("token %d beside %d", reader.Token(), lease.Token())
			}
			w.release(reader)
			w.release(lease)
		})
		synctest.Wait()
		if err := lease.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.Wait()
	})
}

// The hold of one of many readers expires when its own time is over, and the waiter gets in at that
// moment (trap 23).
func TestReadersRunOutAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		var clients []*holdfast.Client
		for range 3 {
			client, _ := w.client()
			clients = append(clients, client)
		}
		for i, ttl := range []time.Duration{3 * time.Second, time.Second} {
			w.must(clients[i].RWMutex("n", holdfast.WithTTL(ttl), holdfast.WithoutRenewal()).RLock(t.Context()))
		}
		lease := w.must(clients[2].RWMutex("n").Lock(t.Context()))
		if took := time.Since(began); took < 3*time.Second || took > 3*time.Second+10*time.Millisecond {
			t.Errorf("a writer is in after %v, want 3s", took)
		}
		w.release(lease)
	})
}

// Permits return one hold at a time.
func TestPermitsRunOutAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		one, _ := w.client()
		other, _ := w.client()
		for _, ttl := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
			w.must(one.Semaphore("n", 3, holdfast.WithTTL(ttl), holdfast.WithoutRenewal()).Acquire(t.Context(), 1))
		}
		lease := w.must(other.Semaphore("n", 3).Acquire(t.Context(), 2))
		if took := time.Since(began); took < 2*time.Second || took > 2*time.Second+10*time.Millisecond {
			t.Errorf("two permits were there after %v, want 2s", took)
		}
		w.release(lease)
	})
}
