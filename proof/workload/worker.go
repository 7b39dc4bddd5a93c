package workload

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"
	"time"

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

// An actor is one goroutine of a worker.
type actor struct {
	client  *holdfast.Client
	dice    dice
	names   Names
	rec     *history.Recorder
	slot    int
	storage *storage
	err     error // of the workload itself
}

// A hold is a lease with how it is held.
type hold struct {
	*history.Lease
	shares bool
	ttl    time.Duration
	fixed  bool // it is not renewed
	seen   map[string]int64
}

// takeStep takes something, uses and gives back what it got.
func (a *actor) takeStep() {
	typ, names := a.names.draw(a.dice)
	switch {
	case typ == history.Latch:
		a.useLatch(names[0])
	case typ == history.Election && a.dice.Percent(35):
		a.askLeader(names[0])
	case typ == history.Mutex && a.dice.Percent(4):
		a.runDo(names[0])
	default:
		w := a.drawWant(typ, names)
		if h := a.acquire(context.Background(), w, nil); h != nil {
			a.useLease(h, 2)
		}
	}
	if a.dice.Percent(30) {
		pause(a.dice.Short(0, 20*time.Millisecond), nil)
	}
}

// acquire takes what is wanted, under the lease outer if there is one.
func (a *actor) acquire(ctx context.Context, w want, outer *hold) *hold {
	limit := a.dice.Short(10*time.Millisecond, longestWait)
	if w.record.Kind != history.Lock {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if w.record.Kind == history.Lock && a.dice.Percent(20) {
		// Cancelled at a moment of its own, rather than at the deadline: about when a grant may
		// come.
		limit = a.dice.Short(0, limit)
		defer time.AfterFunc(limit, cancel).Stop()
	}
	h := &w.hold
	if outer != nil {
		w.record.Root = outer.About.Hold
		h.ttl, h.fixed = outer.ttl, outer.fixed // an entry lives as the lease it entered
	}
	var err error
	h.Lease, err = a.rec.Take(w.record, limit, func() (*holdfast.Lease, error) { return w.take(ctx) })
	if err != nil {
		return nil
	}
	return h
}
