package main

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
	lock    *lock
	closers []io.Closer

	mu      sync.Mutex // of the output
	reports *json.Encoder

	stop    chan struct{} // closed to end the work; nil: it does not work
	stopped chan struct{}
}

// act is one process of a step. It returns when in ends, and the process is to end then. It gives
// nothing back before that but what it was told to.
func act(ctx context.Context, in io.Reader, out io.Writer) error {
	a := &actor{reports: json.NewEncoder(out)}
	orders := json.NewDecoder(in)
	if orders.Decode(&a.role) != nil || locks[a.role.Lock] == nil {
		return errors.New("steps starts this process; it is not to be started by hand")
	}
	inChinese = a.role.Chinese
	if a.role.TTL == 0 {
		a.role.TTL = ttl
	}
	if a.role.Every == 0 {
		a.role.Every = pollEvery
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lock, err := locks[a.role.Lock](a)
	if err != nil {
		return err
	}
	a.lock = lock
	a.report(report{Kind: reportDone})
	queue := make(chan string, 8)
	var obedience sync.WaitGroup
	obedience.Go(func() {
		for order := range queue {
			a.obey(ctx, order)
		}
		a.stopWork()
	})
	for order := ""; orders.Decode(&order) == nil; {
		queue <- order
	}
	close(queue)
	cancel() // ends the work, and a wait for the lock
	for _, closer := range a.closers {
		_ = closer.Close() // ends a command without an answer
	}
	obedience.Wait()
	return nil
}

// report needs no error: where nobody reads, the orders end too.
func (a *actor) report(r report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.reports.Encode(r)
}

func (a *actor) line(format string, args ...any) {
	a.report(report{Kind: reportLine, Text: fmt.Sprintf(text(format), args...)})
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
		a.stopWork()
		err = a.lock.leave(ctx)
	case orderWrite:
		err = a.lock.write(ctx)
	}
	answer := report{Kind: reportDone, In: inside}
	if err != nil {
		answer.Error = fmt.Sprintf("%s: %v", order, err)
	}
	if inside {
		a.startWork(ctx)
	}
	a.report(answer)
}

// startWork begins the work inside the lock. It goes on until the lock says no, stopWork is called,
// or ctx ends.
func (a *actor) startWork(ctx context.Context) {
	entry := report{Kind: reportEnter, At: time.Now()}
	a.report(entry)
	a.stop, a.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(a.stopped)
		last, why := a.work(ctx, entry.At)
		a.report(report{Kind: reportStop, At: last})
		if why != nil {
			a.line("is told that %v", why)
		}
	}()
}

// work returns when it worked last, and why it must not work on; nil: it was asked to stop.
func (a *actor) work(ctx context.Context, from time.Time) (last time.Time, why error) {
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for last = from; ; {
		// The time is taken first: a process that is stopped between the two lines has not worked
		// at a time at which its lock would have said no.
		now := time.Now()
		why := a.lock.err()
		if ctx.Err() != nil {
			return last, nil // the lock is closed with the process
		}
		if why != nil {
			return last, why
		}
		last = now
		select {
		case <-tick.C:
		case <-a.stop:
			return last, nil
		case <-ctx.Done():
			return last, nil
		}
	}
}

func (a *actor) stopWork() {
	if a.stop != nil {
		close(a.stop)
		<-a.stopped
		a.stop = nil
	}
}
