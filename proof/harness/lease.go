package harness

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// Lock waits for a lease, long enough.
func Lock(t *testing.T, m *holdfast.Mutex) *holdfast.Lease {
	t.Helper()
	lease, err := m.Lock(Within(t, Patience))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// Release releases a lease, and ends the test when that fails.
func Release(t *testing.T, lease *holdfast.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Fatal("release: ", err)
	}
}

// HandBack releases a lease that may have been handed over by a message. Such a lease is trusted
// for half a second, until its first renewal, and a release takes no longer than trust lasts. If
// process or server stood still for so long, the lease was lost, or its release is not certain and
// goes on in the background.
func HandBack(t *testing.T, lease *holdfast.Lease) {
	t.Helper()
	err := lease.Release()
	var lost *holdfast.LostError
	if err != nil && !errors.Is(err, holdfast.ErrUncertain) &&
		(!errors.As(err, &lost) || lost.Reason != holdfast.LossExpired) {
		t.Error("hand back: ", err)
	}
}

// Given releases the lease of a successful lock, and returns the error of either.
func Given(lease *holdfast.Lease, err error) error {
	if err != nil {
		return err
	}
	return lease.Release()
}

// A Claimant is a Lock under way.
type Claimant struct {
	Done  chan struct{} // closed when Lock has returned
	Lease *holdfast.Lease
	Err   error
}

// Claim calls Lock in a goroutine.
func Claim(ctx context.Context, m *holdfast.Mutex) *Claimant {
	c := &Claimant{Done: make(chan struct{})}
	go func() {
		defer close(c.Done)
		c.Lease, c.Err = m.Lock(ctx)
	}()
	return c
}

// Got waits for the lease.
func (c *Claimant) Got(t *testing.T) *holdfast.Lease {
	t.Helper()
	Signalled(t, "the waiter returns", c.Done)
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	return c.Lease
}
