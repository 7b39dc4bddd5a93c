package history

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
)

// resultOf names how an operation ended. An error that the operation must not return is Failed.
func resultOf(record Record, err error) Result {
	if err == nil {
		return OK
	}
	type class struct {
		err    error
		result Result
	}
	classes := []class{
		// The end of a wait first, as it may tell its other reasons as well.
		{context.DeadlineExceeded, TimedOut},
		{context.Canceled, Canceled},
		{holdfast.ErrHeld, Held},
		{holdfast.ErrLost, LeaseLost},
		{holdfast.ErrUncertain, Uncertain},
		{holdfast.ErrUnavailable, Unavailable},
		{holdfast.ErrNoLeader, NoLeader},
	}
	switch record.Kind {
	case Release:
		classes = []class{
			{holdfast.ErrLost, LeaseLost},
			{holdfast.ErrNotHeld, NotHeld},
			{holdfast.ErrUncertain, Uncertain},
		}
	case Downgrade:
		classes = []class{
			{holdfast.ErrUncertain, Uncertain},
			{holdfast.ErrLost, LeaseLost},
			{holdfast.ErrUnavailable, Unavailable},
		}
	case CountDown, Count:
		classes = append(classes, class{holdfast.ErrNotHeld, NotHeld})
	}
	// A reader that wants to write, and permits of which an earlier version has set another number.
	mayRefuse := record.Type == ReadWrite && !record.Shares && record.Kind.Holds() || record.Type == Semaphore
	var argument *holdfast.ArgumentError
	if mayRefuse && errors.As(err, &argument) {
		return Refused
	}
	for _, class := range classes {
		if errors.Is(err, class.err) {
			return class.result
		}
	}
	var ticket *holdfast.TicketError
	if errors.As(err, &ticket) && ticket.Reason == holdfast.TicketGone {
		return Held
	}
	return Failed
}
