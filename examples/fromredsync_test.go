package examples_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A service that comes from redsync locks in three ways.

// errBusy is what the customer is told whose order is being paid already.
var errBusy = errors.New("this order is being paid: try again later")

// cleanUpOnce is a job that every instance tries at midnight. One does it, and the others skip it.
// The log says who does it, and since when.
func cleanUpOnce(ctx context.Context, client *holdfast.Client, cleanUp func(context.Context) error) error {
	lease, err := client.Mutex("clean up").TryLock(ctx)
	if errors.Is(err, holdfast.ErrHeld) {
		log.Print("skipped: ", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer lease.Release()
	ctx, cancel := lease.Bind(ctx)
	defer cancel()
	return cleanUp(ctx)
}

// pay waits for 5 s at most. The payment itself may take as long as the request lives.
func pay(ctx context.Context, client *holdfast.Client, order int, charge func(context.Context) error,
	save func(token int64) error) error {
	mutex := client.Mutex(fmt.Sprint("order:", order), holdfast.WithWait(5*time.Second))
	err := mutex.Do(ctx, func(ctx context.Context) error {
		if err := charge(ctx); err != nil {
			return err
		}
		lease, _ := holdfast.LeaseFrom(ctx)
		return save(lease.Token())
	})
	if errors.Is(err, holdfast.ErrHeld) {
		return errBusy
	}
	return err
}

// exportRows holds on as long as it makes progress: each row gives it another minute.
func exportRows(ctx context.Context, client *holdfast.Client, rows []int,
	copyRow func(context.Context, int) error) error {
	export := client.Mutex("export", holdfast.WithoutRenewal(), holdfast.WithTTL(time.Minute))
	lease, err := export.Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release()
	ctx, cancel := lease.Bind(ctx)
	defer cancel()
	for _, row := range rows {
		if err := copyRow(ctx, row); err != nil {
			return err
		}
		if err := lease.Extend(ctx); err != nil {
			return err
		}
	}
	return nil
}
