// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"testing"

	"github.com/holdfast-go/holdfast/store"
)

// ends counts the ends that a listener reports.
type ends struct {
	store.Events
	n int
}

func (e *ends) Closed(error) { e.n++ }

// A connection that ends because Close closes it is not reported, whichever of the two is noticed
// first.
func TestListenerEndAfterCloseNotReported(t *testing.T) {
	lost, closed := make(chan error), make(chan struct{})
	close(lost)
	reported := &ends{}
	l := &listener{events: reported, lost: lost, closed: closed}
	l.watch()
	if reported.n != 1 {
		t.Errorf("an end was reported %d times", reported.n)
	}
	close(closed)
	for range 100 { // select takes either
		l.watch()
	}
	if reported.n != 1 {
		t.Errorf("the end after Close was reported %d times", reported.n-1)
	}
}
