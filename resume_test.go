package holdfast_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A resume whose answer was lost is undone: where it was not agreed on, what it replaced is trusted yet. A hold is given back for good.
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
