package integrations_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/riverqueue/river"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
)

// patience is how long a call waits for what is free.
const patience = time.Minute

// An integration runs one call, task or job of a customer under its lock.
type integration func(client *holdfast.Client, customer string, wait time.Duration,
	work func(context.Context) error) error

var integrations = map[string]integration{
	"asynq": func(client *holdfast.Client, customer string, _ time.Duration, work func(context.Context) error) error {
		next := asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error { return work(ctx) })
		task := asynq.NewTask("invoice", []byte(customer))
		return oneTaskAtATime(client)(next).ProcessTask(context.Background(), task)
	},
	"river": func(client *holdfast.Client, customer string, _ time.Duration, work func(context.Context) error) error {
		worker := &invoiceWorker{locks: client, make: work}
		return worker.Work(context.Background(), &river.Job[invoice]{Args: invoice{Customer: customer}})
	},
	"gRPC": func(client *holdfast.Client, customer string, wait time.Duration, work func(context.Context) error) error {
		caller := func(context.Context) string { return customer }
		next := func(ctx context.Context, _ any) (any, error) { return nil, work(ctx) }
		_, err := oneCallAtATime(client, wait, caller)(context.Background(), nil, nil, next)
		return err
	},
}

// A holder in whose way nobody stands is told at its next renewal, so all are broken together.
func TestContextEndsWithLease(t *testing.T) {
	_, client, end := connect()
	defer end()
	var all sync.WaitGroup
	defer all.Wait()
	for name, run := range integrations {
		all.Go(func() {
			err := run(client, name, patience, func(ctx context.Context) error { return breakOwn(ctx, client, name) })
			if !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("%s: a broken hold ends the work with %v", name, err)
			}
		})
	}
}

// breakOwn breaks the hold of a customer under which it runs, and returns why its context ends.
func breakOwn(ctx context.Context, client *holdfast.Client, customer string) error {
	lease, ok := holdfast.LeaseFrom(ctx)
	if !ok {
		return errors.New("the context has no lease")
	}
	if err := client.Break(ctx, "customer:"+customer, lease.Token()); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		return errors.New("the context does not end")
	}
}

// While the customer is being served, each integration answers as its library wants it, and lets
// nobody in. Afterwards it lets the next one in.
func TestHeldIsNoFailure(t *testing.T) {
	_, client, end := connect()
	defer end()
	away := func(err error) bool {
		return errors.Is(err, holdfast.ErrUnavailable) || status.Code(err) == codes.Unavailable
	}
	busy := map[string]func(error) bool{
		"asynq": func(err error) bool { return errors.Is(err, holdfast.ErrHeld) },
		"river": func(err error) bool { return errors.As(err, new(*river.JobSnoozeError)) },
		"gRPC":  func(err error) bool { return status.Code(err) == codes.ResourceExhausted },
	}
	for name, run := range integrations {
		lease, err := client.Mutex("customer:" + name).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ran := false
		work := func(context.Context) error { ran = true; return nil }
		err = run(client, name, 10*time.Millisecond, work)
		for away(err) { // Redis had no time to answer
			err = run(client, name, 10*time.Millisecond, work)
		}
		if !busy[name](err) || ran {
			t.Errorf("%s: while the customer is being served: %v; it ran: %t", name, err, ran)
		}
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if ran = false; run(client, name, patience, work) != nil || !ran {
				t.Errorf("%s: it does not run although the customer is free", name)
			}
		}
	}
}
