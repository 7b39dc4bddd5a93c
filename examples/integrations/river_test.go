package integrations_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver sqlite

	"github.com/holdfast-go/holdfast"
)

// An invoice is a job of river.
type invoice struct {
	Customer string `json:"customer"`
}

func (invoice) Kind() string { return "invoice" }

// An invoiceWorker makes invoices: one of a customer at a time.
type invoiceWorker struct {
	river.WorkerDefaults[invoice]
	locks *holdfast.Client
	make  func(context.Context) error
}

// Work snoozes the job while another one of the same customer runs, on any host, so that no worker
// waits. To snooze is no failure of the job. Without Redis river tries the job again, as after any
// other error.
func (w *invoiceWorker) Work(ctx context.Context, job *river.Job[invoice]) error {
	lease, err := w.locks.Mutex("customer:" + job.Args.Customer).TryLock(ctx)
	if errors.Is(err, holdfast.ErrHeld) {
		return river.JobSnooze(time.Second)
	}
	if err != nil {
		return err
	}
	defer lease.Release()
	ctx, cancel := lease.Bind(ctx)
	defer cancel()
	return w.make(ctx)
}

// River runs jobs on many hosts. The jobs of one customer run one at a time.
func Example_river() {
	_, client, end := connect()
	defer end()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", filepath.Join(dir, "river.db")) // PostgreSQL, in your programs
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)

	ctx := context.Background()
	driver, quiet := riversqlite.New(db), slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		log.Fatal(err)
	}

	var running, most atomic.Int64
	workers := river.NewWorkers()
	river.AddWorker(workers, &invoiceWorker{locks: client, make: func(context.Context) error {
		most.Store(max(most.Load(), running.Add(1)))
		<-time.After(20 * time.Millisecond) // the work
		running.Add(-1)
		return nil
	}})
	jobs, err := river.NewClient(driver, &river.Config{
		Logger: quiet, Workers: workers, TestOnly: true,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if _, err := jobs.Insert(ctx, invoice{Customer: "42"}, nil); err != nil {
			log.Fatal(err)
		}
	}
	done, unsubscribe := jobs.Subscribe(river.EventKindJobCompleted)
	defer unsubscribe()
	if err := jobs.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for range 3 {
		<-done
	}
	if err := jobs.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("3 jobs ran, at most", most.Load(), "at a time")
	// Output: 3 jobs ran, at most 1 at a time
}
