package workload

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
)

// result names how an operation ended. An error that the operation must not return is Failed.
func result(kind history.Kind, err error) history.Result {
	if err == nil {
		return history.OK
	}
	type class struct {
		err    error
		result history.Result
	}
	classes := []class{
		// The end of a wait first, as it may tell its other reasons as well.
		{context.DeadlineExceeded, history.TimedOut},
		{context.Canceled, history.Canceled},
		{holdfast.ErrHeld, history.Held},
		{holdfast.ErrLost, history.LeaseLost},
		{holdfast.ErrUncertain, history.Uncertain},
		{holdfast.ErrUnavailable, history.Unavailable},
	}
	if kind == history.Release {
		classes = []class{
			{holdfast.ErrLost, history.LeaseLost},
			{holdfast.ErrNotHeld, history.NotHeld},
			{holdfast.ErrUncertain, history.Uncertain},
		}
	}
	for _, class := range classes {
		if errors.Is(err, class.err) {
			return class.result
		}
	}
	return history.Failed
}

// until translates the trust end into the clock of the history. The clock of the history is read first: whatever time
// passes in between makes the result earlier than the truth.
func until(lease *holdfast.Lease) int64 {
	now := history.Now()
	return now + int64(time.Until(lease.Until()))
}

// pause waits, or until done.
func pause(long time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}
