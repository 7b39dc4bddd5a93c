package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// A worker is the state of a worker's process.
type worker struct {
	Config
	Number  int
	lottery *holdfast.Mutex
	reports *json.Encoder
	tasks   chan task
}

// Work is one worker. It returns when in ends, and the process is to end then.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &worker{reports: json.NewEncoder(out), tasks: make(chan task, 1)}
	decoder := json.NewDecoder(in)
	if decoder.Decode(w) != nil {
		return errors.New("the demo starts this command; it is not to be run by hand")
	}
	client, disconnect, err := server.Client(w.URL, server.TLS{}, holdfast.Config{
		Label: fmt.Sprintf("worker %d", w.Number), Prefix: w.Prefix,
		ReleaseTimeout: 3 * time.Second, // a dead server must not keep the demo from ending
	})
	if err != nil {
		return err
	}
	defer disconnect()
	defer client.Close() // ends the wait for the lock too
	// With a min hold, Lock confirms a hand-over for the whole TTL. Without, a machine that stands
	// still for half a second would end a lease that is not on trial.
	w.lottery = client.Mutex("lottery",
		holdfast.WithTTL(w.TTL), holdfast.WithMaxHold(w.maxHold()), holdfast.WithMinHold(time.Microsecond))
	go w.play(ctx)
	for t := leave; decoder.Decode(&t) == nil; {
		w.tasks <- t
	}
	return nil
}

// report needs no error: where nobody reads, the tasks end too.
func (w *worker) report(r report) { _ = w.reports.Encode(r) }

// play takes the lock once in each round.
func (w *worker) play(ctx context.Context) {
	w.report(report{Step: ready})
	var err error
	for err == nil {
		<-w.tasks
		err = w.round(ctx)
	}
	w.report(report{Step: ended, Failed: err.Error()})
}

func (w *worker) round(ctx context.Context) (err error) {
	r, lease := report{Step: entered, Waiting: time.Now()}, (*holdfast.Lease)(nil)
	if !w.NoLock {
		if lease, err = w.lottery.Lock(ctx); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
	}
	r.Token, r.Granted, r.Until = lease.Token(), time.Now(), lease.Until()
	w.report(r)
	t := <-w.tasks
	if t != leave {
		r.Ticket = w.draw(lease, t)
	}
	if lost := (*holdfast.LostError)(nil); errors.As(lease.Err(), &lost) {
		r.Lost = string(lost.Reason)
	}
	r.Step = leaving
	w.report(r)
	<-w.tasks
	if err := lease.Release(); err != nil && !w.NoLock && !(t > draw && errors.Is(err, holdfast.ErrLost)) {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// draw takes its time, and returns the winning ticket, or 0 if the lease is lost. A worker that was
// stopped does not look at its lease: it has done that before.
func (w *worker) draw(lease *holdfast.Lease, t task) (ticket int) {
	enough, lost := time.After(w.Draw), lease.Done()
	switch {
	case t == overstay:
		enough = nil
	case t == stop, w.NoLock:
		lost = nil
	}
	select {
	case <-enough:
		return 1 + rand.IntN(9999)
	case <-lost:
		return 0
	}
}
