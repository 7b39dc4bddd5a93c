package holdfast_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A lease that is over at the moment of Close is not given back, and causes no error: its hold is
// not there any more.
func TestCloseWhenALeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 20 {
			client, sent := w.client()
			lease := w.must(client.Mutex("n", holdfast.WithoutRenewal(), holdfast.WithTTL(time.Second)).Lock(t.Context()))
			<-time.After(time.Until(lease.Until())) // the clocks of both ring at once
			if err := client.Close(); err != nil || sent.frees.Load() != 0 {
				t.Fatalf("%d given back: %v", sent.frees.Load(), err)
			}
			<-time.After(time.Second)
		}
	})
}
