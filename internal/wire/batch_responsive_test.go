package wire

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// sendsItself reports whether a caller whose context can be cancelled sends its request itself:
// then it learns of the cancellation only with the reply.
func sendsItself(t *testing.T, b *Batcher) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	replies := make(chan Reply, 1)
	go func() { replies <- b.Do(ctx, Request{}, time.Now().Add(time.Minute)) }()
	synctest.Wait()
	cancel()
	reply := <-replies
	<-time.After(time.Millisecond) // for the reply to a caller that did not wait
	synctest.Wait()
	return !errors.Is(reply.Err, context.Canceled)
}

// Whether a server is responsive depends on the last request that was sent. A request that was not
// sent in its time says nothing of the server.
func TestBatcherUnsentRequestSaysNothingOfServer(t *testing.T) {
	for name, unsent := range map[string][]bool{
		"all sent":             {false, false},
		"the first unsent":     {true, false},
		"the last unsent":      {false, true},
		"the only one unsent":  {true},
		"all of several alike": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &steadyStore{}
				b := NewBatcher(server)
				send := func() {
					var batch []*call
					for _, unsent := range unsent {
						deadline := time.Now().Add(time.Minute)
						if unsent {
							deadline = time.Now()
						}
						batch = append(batch, b.newCall(Request{}, deadline))
					}
					b.mu.Lock()
					b.startLocked(len(batch))
					b.mu.Unlock()
					b.sendBatches(slices.Clone(batch))
					for i, c := range batch {
						if reply := <-c.done; reply.Unsent != unsent[i] {
							t.Errorf("request %d: got %+v", i, reply)
						}
					}
				}
				b.Do(t.Context(), Request{}, time.Now().Add(time.Minute))
				if send(); !sendsItself(t, b) {
					t.Error("a healthy server counts as not responsive")
				}
				server.silent = true
				b.Do(context.Background(), Request{}, time.Now().Add(time.Minute))
				if send(); sendsItself(t, b) {
					t.Error("a silent server counts as responsive")
				}
			})
		})
	}
}
