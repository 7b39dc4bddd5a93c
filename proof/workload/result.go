package workload

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
)

// resultOf names how an operation ended. An error that the operation must not return is Failed.
func resultOf(record history.Record, err error) history.Result {
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
		{holdfast.ErrNoLeader, history.NoLeader},
	}
	switch record.Kind {
	case history.Release:
		classes = []class{
			{holdfast.ErrLost, history.LeaseLost},
			{holdfast.ErrNotHeld, history.NotHeld},
			{holdfast.ErrUncertain, history.Uncertain},
		}
	case history.Downgrade:
		classes = []class{
			{holdfast.ErrUncertain, history.Uncertain},
			{holdfast.ErrLost, history.LeaseLost},
			{holdfast.ErrUnavailable, history.Unavailable},
		}
	case history.CountDown, history.Count:
		classes = append(classes, class{holdfast.ErrNotHeld, history.NotHeld})
	}
	// A reader that wants to write, and a caller that took the semaphore for larger or smaller.
	mayRefuse := record.Type == history.ReadWrite && !record.Shares && record.Kind.Holds() ||
		record.Type == history.Semaphore
	if badArgument(err) != nil && mayRefuse {
		return history.Refused
	}
	for _, class := range classes {
		if errors.Is(err, class.err) {
			return class.result
		}
	}
	return history.Failed
}

// trustEnd translates the trust end into the clock of the history. The clock of the history is read
// first: whatever time passes in between makes the result earlier than the truth.
func trustEnd(lease *holdfast.Lease) int64 {
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

// badArgument returns what is wrong with an argument, if that is what is wrong.
func badArgument(err error) *holdfast.ArgumentProblem {
	var wrong *holdfast.ArgumentError
	if !errors.As(err, &wrong) || len(wrong.Problems) == 0 {
		return nil
	}
	return &wrong.Problems[0]
}
