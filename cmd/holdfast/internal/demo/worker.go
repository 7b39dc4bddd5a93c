package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/redis/go-redis/v9"
)

// A worker is the state of a worker's process.
type worker struct {
	Config
	Number  int
	answers chan answer // closed when the parent is gone

	mu  sync.Mutex // renewals are reported by another goroutine
	out *json.Encoder
}

// Work is one worker. It returns when in ends.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &worker{answers: make(chan answer, 1), out: json.NewEncoder(out)}
	if json.Unmarshal([]byte(os.Getenv(settingsVariable)), w) != nil {
		return errors.New("the demo starts this command; it is not to be run by hand")
	}
	options, err := server.ParseURL(w.URL)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{
		Label: fmt.Sprintf("worker %d", w.Number), Observer: w, Prefix: w.Prefix,
		ReleaseTimeout: 3 * time.Second, // a dead server must not keep the demo from ending
	})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(w.answers)
		defer cancel() // ends the wait for the lock too
		decoder := json.NewDecoder(in)
		for a := (answer{}); decoder.Decode(&a) == nil; a = (answer{}) {
			w.answers <- a
		}
	}()
	for end := (report{}); ctx.Err() == nil; {
		end.Step = ready
		end = w.round(ctx, client, w.ask(end).Trial)
	}
	return nil
}

// Observe implements holdfast.Observer: it reports renewals.
func (w *worker) Observe(e holdfast.Event) {
	if e.Kind == holdfast.EventRenewed {
		w.send(report{Step: renewed, Until: time.Now().Add(w.TTL)})
	}
}

// send needs no error: where nobody reads, the answers end too.
func (w *worker) send(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(r)
}

// ask reports and waits for the answer.
func (w *worker) ask(r report) answer {
	w.send(r)
	return <-w.answers
}

// round takes the lock once. It returns the report of the end of the round.
func (w *worker) round(ctx context.Context, client *holdfast.Client, kind trial) (end report) {
	// With a min hold, Lock confirms a hand-over for the whole TTL. Without, a machine that stands
	// still for half a second would end a lease that is not on trial.
	options := []holdfast.Option{holdfast.WithTTL(w.TTL), holdfast.WithMinHold(time.Microsecond)}
	if kind == overstay {
		options = append(options, holdfast.WithMaxHold(w.maxHold()))
	}
	var lease *holdfast.Lease
	waiting := time.Now()
	if !w.NoLock {
		var err error
		if lease, err = client.Mutex("lottery", options...).Lock(ctx); err != nil {
			return report{Failed: "lock: " + err.Error()}
		}
	}
	a := w.ask(report{Step: entered, Token: lease.Token(), Waiting: waiting, At: time.Now(), Until: lease.Until()})
	leave := report{Step: leaving, Token: lease.Token()}
	if !a.Drawn {
		leave.Ticket = w.draw(ctx, lease, a.Trial)
	}
	if lost := (*holdfast.LostError)(nil); errors.As(lease.Err(), &lost) {
		leave.Lost = string(lost.Reason)
	}
	w.ask(leave)
	end.At = time.Now()
	if err := lease.Release(ctx); err != nil && !w.NoLock && !(a.Trial != none && errors.Is(err, holdfast.ErrLost)) {
		end.Failed = "release: " + err.Error()
	}
	return end
}

// draw takes its time, and returns the winning ticket, or 0 if the lease is lost. A worker that was
// stopped does not look at its lease: it has done that before.
func (w *worker) draw(ctx context.Context, lease *holdfast.Lease, kind trial) (ticket int) {
	enough, lost := time.After(w.Draw), lease.Done()
	if kind == overstay {
		enough = nil
	}
	if kind == stop || w.NoLock {
		lost = nil
	}
	select {
	case <-enough:
		return 1 + rand.IntN(9999)
	case <-lost:
	case <-ctx.Done():
	}
	return 0
}
