package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// An actor is the state of a child process.
type actor struct {
	role role
	lock lock

	mu      sync.Mutex // of the output
	reports *json.Encoder

	stop    chan struct{} // closed to end the work; nil: it does not work
	stopped chan struct{}
}

// Work is one process of a step. It returns when in ends, and the process is to end then.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &actor{reports: json.NewEncoder(out)}
	orders := json.NewDecoder(in)
	if orders.Decode(&a.role) != nil {
		return errors.New("holdfast steps starts this command; it is not to be run by hand")
	}
	if a.role.TTL == 0 {
		a.role.TTL = ttl
	}
	open := locks[a.role.Lock]
	if open == nil {
		return fmt.Errorf("no lock is called %q", a.role.Lock)
	}
	var err error
	if a.lock, err = open(a); err != nil {
		return err
	}
	a.report(report{Kind: reportAnswer})
	queue := make(chan string, 8)
	go func() {
		for order := range queue {
			a.obey(ctx, order)
		}
	}()
	for order := ""; orders.Decode(&order) == nil; {
		queue <- order
	}
	return nil
}

// report needs no error: where nobody reads, the orders end too.
func (a *actor) report(r report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.At.IsZero() {
		r.At = time.Now()
	}
	_ = a.reports.Encode(r)
}

func (a *actor) line(format string, args ...any) {
	a.report(report{Kind: reportLine, Text: fmt.Sprintf(format, args...)})
}

func (a *actor) obey(ctx context.Context, order string) {
	var inside bool
	var err error
	switch order {
	case orderTry:
		inside, err = a.lock.try(ctx)
	case orderWait:
		err = a.lock.wait(ctx)
		inside = err == nil
	case orderLeave:
		a.rest()
		err = a.lock.release(ctx)
	case orderWrite:
		err = a.lock.write(ctx)
	}
	answer := report{Kind: reportAnswer, In: inside}
	if err != nil {
		answer.Error = fmt.Sprintf("%s: %v", order, err)
	}
	if inside {
		a.work()
	}
	a.report(answer)
}

// work begins the work inside the lock, which goes on until the lock says no, or until rest.
func (a *actor) work() {
	entered := report{Kind: reportEntered, At: time.Now(), Token: a.lock.token()}
	a.report(entered)
	a.stop, a.stopped = make(chan struct{}), make(chan struct{})
	go func(last time.Time) {
		defer close(a.stopped)
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for {
			// The time is taken first: a process that is stopped between the two lines has not
			// worked at a time at which its lock would have said no.
			now := time.Now()
			if why := a.lock.mayWork(); why != nil {
				a.report(report{Kind: reportStopped, At: last})
				a.line("is told that %v", why)
				return
			}
			last = now
			select {
			case <-tick.C:
			case <-a.stop:
				a.report(report{Kind: reportStopped, At: last})
				return
			}
		}
	}(entered.At)
}

// rest ends the work.
func (a *actor) rest() {
	if a.stop != nil {
		close(a.stop)
		<-a.stopped
		a.stop = nil
	}
}
