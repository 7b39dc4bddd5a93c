package storetest

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

func observing() []test {
	return []test{
		{"a lease's life", observeLife, 0},
	}
}

func observeLife(e *env) {
	a, b := e.client(), e.client()
	began := time.Now()
	lease := e.lock(a.Mutex(name))
	if granted := a.of(holdfast.EventGranted); len(granted) != 1 || granted[0].Name != name ||
		granted[0].Token != lease.Token() {
		e.Errorf("granted: %+v", granted)
	}
	w := e.startWaitingFor(e.ctx(), b, b.Mutex(name))
	<-time.After(10 * time.Millisecond) // so that durations are not 0; a fake clock moves only so
	e.release(lease)
	if released := a.of(holdfast.EventReleased); len(released) != 1 || released[0].Token != lease.Token() ||
		released[0].Held <= 0 || released[0].Err != nil {
		e.Errorf("released: %+v", released)
	}
	next := w.await()
	if granted := b.of(holdfast.EventGranted); len(granted) != 1 || granted[0].Waited <= 0 ||
		granted[0].Token != next.Token() {
		e.Errorf("granted: %+v", granted)
	}
	e.release(next)
	for _, c := range []*client{a, b} {
		var bad []holdfast.Event
		if c == a || time.Since(began) < claim { // a hand-over is trusted for so long
			bad = c.of(holdfast.EventLost)
		}
		if time.Since(began) < time.Second { // a request may take so long
			bad = append(bad, c.of(holdfast.EventRetried)...)
		}
		if len(bad) > 0 {
			e.Errorf("got %+v", bad)
		}
	}
}
