package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// endOfContext is how long the context of a lost lease may take to end: another goroutine ends it.
const endOfContext = 30 * time.Second

// Run writes down an operation: its call, which should return within the limit, and what came of
// it. The operation may add to the record of its return, such as a result that is no error.
func (r *Recorder) Run(record Record, limit time.Duration, operation func(back *Record) error) error {
	if record.Op == 0 {
		record.Op = r.NextOp()
	}
	back := record
	record.Event, record.Limit = Call, int64(limit)
	r.Put(record)
	back.Text = ""
	err := operation(&back)
	back.Event = Return
	switch {
	case err != nil:
		back.Result, back.Text = resultOf(record, err), err.Error()
	case back.Result == "":
		back.Result = OK
	}
	r.Put(back)
	return err
}

// A Lease is a lease whose process writes down what it does with it and what it is told of it. It
// is not safe for concurrent use.
type Lease struct {
	*holdfast.Lease
	About    Record // what each record of the lease says: its type, names, ID and token
	rec      *Recorder
	lost     bool // and that is written down
	released bool
}

// Take writes down a lock.
func (r *Recorder) Take(record Record, limit time.Duration, take func() (*holdfast.Lease, error)) (*Lease, error) {
	record.Op = r.NextOp()
	record.Hold = r.HoldID(record.Op)
	l := &Lease{rec: r}
	err := r.Run(record, limit, func(back *Record) (err error) {
		if l.Lease, err = take(); err != nil {
			return err
		}
		back.At, back.Until = Now(), l.trustEnd()
		if back.Token = l.Token(); record.Type == Group {
			back.Token, back.Tokens = 0, l.Tokens()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.About = Record{Type: record.Type, Name: record.Name, Names: record.Names, Hold: record.Hold, Token: l.Token()}
	return l, nil
}

// Run writes down an operation on the lease.
func (l *Lease) Run(kind Kind, limit time.Duration, operation func() error) error {
	record := l.About
	record.Kind = kind
	return l.rec.Run(record, limit, func(*Record) error { return operation() })
}

// trustEnd translates the trust end into the clock of the history. The clock of the history is read
// first: whatever time passes in between makes the result earlier than the truth.
func (l *Lease) trustEnd() int64 {
	now := Now()
	return now + int64(time.Until(l.Until()))
}

// RecordTrust writes down what the library says of the lease, and returns that.
func (l *Lease) RecordTrust() error {
	record := l.About
	// In this order: the trust end only moves on, so if Err was nil after the later of two trust
	// ends, it was wrong.
	asked := time.Now()
	err := l.Err()
	record.At, record.Until = Now(), l.trustEnd()
	switch {
	case err == nil: // also of one that was lost before, which the check will find
		record.Event = Trust
		if l.Until().Before(asked) {
			record.Result = Overdue
		}
		l.rec.Put(record)
		return nil
	case l.lost:
		return err
	}
	l.lost = true
	record.Event, record.Text = Lost, err.Error()
	l.rec.Put(record)
	select { // the context ends with the same cause
	case <-l.Done():
	case <-time.After(endOfContext):
	}
	if cause := context.Cause(leased.Context(l.Lease)); !errors.Is(err, holdfast.ErrLost) ||
		!errors.Is(cause, holdfast.ErrLost) {
		record.At, record.Result, record.Text = Now(), Failed, fmt.Sprintf("Err %v, Cause %v", err, cause)
		l.rec.Put(record)
	}
	return err
}

// Keep holds the lease for so long, or until it is lost, which it returns, and writes down again
// and again whether it is to be trusted.
func (l *Lease) Keep(long time.Duration) (lost error) {
	for end := time.Now().Add(long); ; {
		if err := l.RecordTrust(); err != nil {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		select {
		case <-time.After(min(left, 5*time.Millisecond)):
		case <-l.Done():
		}
	}
}

// GiveBack releases the lease, for the first time or again.
func (l *Lease) GiveBack(limit time.Duration) error {
	if !l.released {
		_ = l.RecordTrust()
	}
	l.released = true
	return l.Run(Release, limit, l.Release)
}

// A Way is a method that takes a lock.
type Way func(context.Context) (*holdfast.Lease, error)

// WayOf returns how a client takes what the record of a call asks for.
func WayOf(c *holdfast.Client, asked Record, options ...holdfast.Option) Way {
	either := func(lock, try Way) Way {
		if asked.Kind == TryLock {
			return try
		}
		return lock
	}
	switch asked.Type {
	case ReadWrite:
		rw := c.RWMutex(asked.Name, options...)
		if asked.Shares {
			return either(rw.RLock, rw.TryRLock)
		}
		return either(rw.Lock, rw.TryLock)
	case Semaphore:
		s := c.Semaphore(asked.Name, asked.Size, options...)
		return either(
			func(ctx context.Context) (*holdfast.Lease, error) { return s.Acquire(ctx, asked.Weight) },
			func(ctx context.Context) (*holdfast.Lease, error) { return s.TryAcquire(ctx, asked.Weight) })
	case Election:
		election := c.Election(asked.Name, options...)
		return either(election.Campaign, election.TryCampaign)
	case Group:
		group := c.All(asked.Names, options...)
		return either(group.Lock, group.TryLock)
	}
	mutex := c.Mutex(asked.Name, options...)
	return either(mutex.Lock, mutex.TryLock)
}

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
