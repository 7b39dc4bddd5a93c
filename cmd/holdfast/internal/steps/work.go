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
	role    role
	lock    lock
	clients []io.Closer

	mu      sync.Mutex // of the output
	reports *json.Encoder

	stop    chan struct{} // closed to end the work; nil: it does not work
	stopped chan struct{}
}

// Work is one process of a step. It returns when in ends, and the process is to end then. It gives
// nothing back before that but what it was told to.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lock, err := open(a)
	if err != nil {
		return err
	}
	a.lock = lock
	a.report(report{Kind: reportAnswer})
	queue := make(chan string, 8)
	var done sync.WaitGroup
	done.Go(func() {
		for order := range queue {
			a.obey(ctx, order)
		}
		a.rest()
	})
	for order := ""; orders.Decode(&order) == nil; {
		queue <- order
	}
	close(queue)
	cancel() // ends the work, and a wait for the lock
	for _, client := range a.clients {
		_ = client.Close() // ends a command without an answer
	}
	done.Wait()
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
		a.work(ctx)
	}
	a.report(answer)
}

// work begins the work inside the lock. It goes on until the lock says no, rest is called, or ctx
// ends.
func (a *actor) work(ctx context.Context) {
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
			why := a.lock.mayWork()
			if ctx.Err() != nil {
				why = nil // the lock is closed with the process
			}
			if why != nil {
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
			case <-ctx.Done():
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
