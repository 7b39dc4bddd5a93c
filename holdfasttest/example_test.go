package holdfasttest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// export stands for code of a user. It copies row after row while it holds the lock, and stops when
// the lock is lost.
func export(ctx context.Context, client *holdfast.Client, rows <-chan int, copied func(row int)) error {
	return client.Mutex("export").Do(ctx, func(ctx context.Context) error {
		for {
			select {
			case row, more := <-rows:
				if !more {
					return nil
				}
				copied(row)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}

// This is the example of the package's document: keep them alike.
func TestExportStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		rows, done := make(chan int), make(chan error)
		copied := 0
		go func() { done <- export(t.Context(), server.Client(nil), rows, func(int) { copied++ }) }()
		rows <- 1
		server.Silence() // the lock cannot be renewed
		if err := <-done; !errors.Is(err, holdfast.ErrLost) || copied != 1 {
			t.Errorf("it ended with %v after %d rows", err, copied)
		}
	})
}
