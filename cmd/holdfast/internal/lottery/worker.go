package lottery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Work is a worker's life: it reads orders from in and writes reports to out, until in ends.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &worker{rounds: make(chan order, 1), answers: make(chan answer, 1), out: json.NewEncoder(out)}
	orders := json.NewDecoder(in)
	var first order
	if err := orders.Decode(&first); err != nil || first.Setup == nil {
		return errors.New("this command is started by the demo, not by hand")
	}
	w.setup = *first.Setup
	lock, err := open(w.setup, func() {
		now := time.Now()
		_ = w.say(report{Step: renewed, At: now, Until: now.Add(w.setup.TTL)})
	})
	if err != nil {
		return err
	}
	defer lock.close()
	w.lock = lock
	go func() {
		defer cancel() // also in the midst of waiting for the lock: nobody is there any more to draw for
		w.listen(ctx, orders)
	}()
	return w.live(ctx)
}

type worker struct {
	setup   setup
	lock    lock
	rounds  chan order
	answers chan answer

	mu  sync.Mutex
	out *json.Encoder
}

// say reports. Renewals are reported in between.
func (w *worker) say(r report) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Encode(r)
}

// listen sorts the orders until there are no more.
func (w *worker) listen(ctx context.Context, orders *json.Decoder) {
	for {
		var o order
		if orders.Decode(&o) != nil {
			return
		}
		switch {
		case o.Answer != nil:
			select {
			case w.answers <- *o.Answer:
			case <-ctx.Done():
			}
		case o.Round > 0:
			select {
			case w.rounds <- o:
			case <-ctx.Done():
			}
		}
	}
}

func (w *worker) live(ctx context.Context) error {
	if err := w.say(report{Step: ready, At: time.Now()}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case o := <-w.rounds:
			end := report{Step: done, Round: o.Round}
			released, err := w.play(ctx, o.Round, o.MaxHold)
			if ctx.Err() != nil {
				return nil
			}
			if end.At = released; err != nil {
				end.Failed = err.Error()
			}
			if err := w.say(end); err != nil {
				return err
			}
		}
	}
}

// play is one round. It returns when it began to release, zero if it never held.
func (w *worker) play(ctx context.Context, round int, max time.Duration) (released time.Time, err error) {
	since := time.Now()
	hold, err := w.lock.lock(ctx, max)
	if err != nil {
		return time.Time{}, fmt.Errorf("lock: %w", err)
	}
	at := time.Now()
	var a answer
	defer func() {
		released = time.Now()
		trial := a.Careless || a.Dawdle // in which the lease is lost, as was to be shown
		if e := hold.Release(ctx); e != nil && !(trial && errors.Is(e, holdfast.ErrLost)) {
			err = errors.Join(err, fmt.Errorf("release: %w", e))
		}
	}()
	a, err = w.ask(ctx, report{Step: entered, Round: round, Token: hold.Token(), Since: since, At: at, Until: hold.Until()})
	if err != nil {
		return
	}
	if !a.Drawn {
		if err = w.draw(ctx, hold, round, a); err != nil {
			return
		}
	}
	leaving := report{Step: left, Round: round, Token: hold.Token(), At: time.Now()}
	if lost := hold.Err(); lost != nil {
		leaving.Lost = lost.Error()
	}
	_, err = w.ask(ctx, leaving)
	return
}

// draw takes its time, and then draws if it still may.
func (w *worker) draw(ctx context.Context, hold hold, round int, a answer) error {
	shuffling := time.NewTimer(w.setup.Draw)
	defer shuffling.Stop()
	enough, lost := shuffling.C, hold.Context().Done()
	if a.Dawdle {
		enough = nil
	}
	if a.Careless {
		lost = nil
	}
	select {
	case <-enough:
	case <-lost:
		return nil // another may be drawing now
	case <-ctx.Done():
		return ctx.Err()
	}
	ticket := 1 + rand.IntN(9999)
	_, err := w.ask(ctx, report{Step: drew, Round: round, Token: hold.Token(), Ticket: ticket, At: time.Now()})
	return err
}

// ask reports and waits for the hall's answer.
func (w *worker) ask(ctx context.Context, r report) (answer, error) {
	if err := w.say(r); err != nil {
		return answer{}, err
	}
	select {
	case a := <-w.answers:
		return a, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}
