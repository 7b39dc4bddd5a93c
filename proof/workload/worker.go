package workload

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/redisstore"
)

// Worker runs the plan until standard input ends, and gives everything back. Its result belongs
// into the exit code and on standard error.
func Worker(plan Plan) (err error) {
	left := leak.Watch()
	rec, err := history.Create(plan.Dir, plan.Proc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()

	if err := runActors(plan, rec); err != nil {
		return fmt.Errorf("worker %s: %w", plan.Proc, err)
	}
	if left := left(); left != "" {
		return fmt.Errorf("worker %s: goroutines left behind after Close:\n\n%s", plan.Proc, left)
	}
	return nil
}

func runActors(plan Plan, rec *history.Recorder) (err error) {
	beating, rest := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	beats.Go(func() { recordStalls(beating, rec, "", nil) })
	defer beats.Wait()
	defer rest()
	rdb := redis.NewClient(&redis.Options{Addr: plan.Addr})
	defer func() { err = errors.Join(err, rdb.Close()) }()
	client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{
		Label: labelOf(plan.Proc), Prefix: plan.Prefix, TTL: ttls[0],
	})
	if err != nil {
		return err
	}
	defer func() {
		rec.Put(history.Record{Event: history.Close}) // gives back what the actors did not
		err = errors.Join(err, client.Close())
	}()

	stop, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // not waited for: it reads until the parent closes the other end, or is gone
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var wg sync.WaitGroup
	errs := make([]error, plan.Goroutines)
	for i := range errs {
		wg.Go(func() {
			errs[i] = runActor(stop, plan, i, client, rec)
			if errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func runActor(stop context.Context, plan Plan, index int, client *holdfast.Client, rec *history.Recorder) error {
	storage, err := dialResource(plan.Resource)
	if err != nil {
		return err
	}
	defer storage.close()
	proc := fnv.New64a()
	_, _ = proc.Write([]byte(plan.Proc))
	a := &actor{
		client: client, dice: newDice(plan.Seed, proc.Sum64(), uint64(index)), names: plan.Names, rec: rec,
		slot: plan.Slot, storage: storage,
	}
	for stop.Err() == nil && a.err == nil {
		a.takeStep()
	}
	return a.err
}
