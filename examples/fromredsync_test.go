package examples_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
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

// logs collects what is logged until the test is over.
func logs(t *testing.T) *bytes.Buffer {
	t.Helper()
	logged, before := &bytes.Buffer{}, log.Writer()
	log.SetOutput(logged)
	t.Cleanup(func() { log.SetOutput(before) })
	return logged
}

// A job is done by one instance. Another one skips it meanwhile, and logs who does it.
func TestFromRedsyncJobIsSkippedWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, logged, done := holdfasttest.Start(t), logs(t), 0
		one, other := server.Client(&holdfast.Config{Label: "host 1"}), server.Client(nil)
		err := cleanUpOnce(t.Context(), one, func(ctx context.Context) error {
			done++
			return cleanUpOnce(t.Context(), other, func(context.Context) error { done++; return nil })
		})
		if err != nil || done != 1 {
			t.Errorf("done %d times: %v", done, err)
		}
		if text := logged.String(); !strings.Contains(text, `held by "host 1" since `) ||
			!strings.Contains(text, " left unless renewed") {
			t.Errorf("logged: %s", text)
		}
		if err := cleanUpOnce(t.Context(), other, func(context.Context) error { done++; return nil }); err != nil ||
			done != 2 {
			t.Errorf("done %d times: %v", done, err)
		}
	})
}

// A payment may take longer than it may wait. Another one of the same order gives up meanwhile.
func TestFromRedsyncPaymentWaitsAndIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, token, holds := holdfasttest.Start(t), int64(0), make(chan struct{})
		one, other := server.Client(nil), server.Client(nil)
		paid := make(chan error)
		go func() {
			paid <- pay(t.Context(), one, 42, func(ctx context.Context) error {
				close(holds)
				return works(time.Minute, new(bool))(ctx, 42)
			}, func(with int64) error { token = with; return nil })
		}()
		<-holds
		began := time.Now()
		err := pay(t.Context(), other, 42, func(context.Context) error { t.Error("charged twice"); return nil }, nil)
		if waited := time.Since(began); !errors.Is(err, errBusy) || waited != 5*time.Second {
			t.Errorf("after %v: %v", waited, err)
		}
		if err := <-paid; err != nil || token == 0 {
			t.Errorf("paid with token %d: %v", token, err)
		}
	})
}

// An export ends when its request is cancelled, when its lease is lost, and when it hangs. The lock
// is free then. An export that makes progress holds on.
func TestFromRedsyncExportEnds(t *testing.T) {
	for name, test := range map[string]struct {
		at   func(server *holdfasttest.Server, lease *holdfast.Lease, cancel func()) // at the third row
		rows int
		want error
	}{
		"done":      {func(*holdfasttest.Server, *holdfast.Lease, func()) {}, 4, nil},
		"cancelled": {func(_ *holdfasttest.Server, _ *holdfast.Lease, cancel func()) { cancel() }, 2, context.Canceled},
		"lost": {func(s *holdfasttest.Server, lease *holdfast.Lease, _ func()) { s.Lose(lease) }, 2,
			holdfast.ErrLost},
		"hangs": {func(*holdfasttest.Server, *holdfast.Lease, func()) { <-time.After(time.Hour) }, 2,
			holdfast.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, written := holdfasttest.Start(t), 0
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := exportRows(ctx, server.Client(nil), []int{1, 2, 3, 4}, func(ctx context.Context, row int) error {
					if lease, _ := holdfast.LeaseFrom(ctx); row == 3 {
						test.at(server, lease, cancel)
					}
					err := works(50*time.Second, new(bool))(ctx, row)
					if err == nil {
						written++
					}
					return err
				})
				if !errors.Is(err, test.want) || written != test.rows {
					t.Errorf("after %d rows: %v", written, err)
				}
				lease, err := server.Client(nil).Mutex("export").TryLock(t.Context())
				if err != nil {
					t.Fatalf("not free: %v", err)
				}
				if err := lease.Release(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
