package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

func TestMain(m *testing.M) {
	harness.Quiet()
	os.Exit(leak.Main(m))
}

// maxTTL is how long a master that forgot does not count, in all these tests, and how long a lease
// is taken for: a request may take a sixth of it, and a machine or a server that stands still for a
// second loses no lease.
const maxTTL = 6 * time.Second

// A rig is masters, clients and what these were told.
type rig struct {
	*testing.T
	masters []*redisserver.Server
	dir     string
	workers []*worker
}

// newRig starts masters that count. It takes seconds, so it skips the test unless such are wanted.
func newRig(t *testing.T, n int) *rig {
	t.Helper()
	return newEmptyRig(t).start(n).found()
}

// newEmptyRig makes a rig without masters.
func newEmptyRig(t *testing.T) *rig {
	t.Helper()
	harness.Long(t)
	return &rig{T: t, dir: t.TempDir()}
}

// start starts masters.
func (r *rig) start(n int, opts ...string) *rig {
	r.Helper()
	for range n {
		r.masters = append(r.masters, redisserver.Start(r.T, opts...))
	}
	return r
}

// found makes all masters count.
func (r *rig) found() *rig {
	r.Helper()
	founder, judge := r.client(func(c *holdfast.Config) { c.TrustNewNodes = true }, nil), r.client(nil, nil)
	r.until("masters count for all", func() bool { // for the founder they do at once
		if _, err := founder.Quorum(r.Context()); err != nil {
			r.Fatal(err)
		}
		return r.count(judge.Client) == len(r.masters)
	})
	if err := founder.Close(); err != nil { // what it has on its way would let a master that forgets count again
		r.Fatal(err)
	}
	return r
}

// counting waits until so many masters count, for a client.
func (r *rig) counting(c *holdfast.Client, n int) {
	r.Helper()
	r.until("masters count", func() bool { return r.count(c) >= n })
}

// count is how many masters count for a client.
func (r *rig) count(c *holdfast.Client) (count int) {
	r.Helper()
	nodes, err := c.Quorum(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, node := range nodes {
		if node.Counts {
			count++
		}
	}
	return count
}

// until waits for a condition.
func (r *rig) until(what string, holds func() bool) {
	r.Helper()
	harness.Eventually(r.T, what, holds)
}

// pass waits for time to pass at the masters, which have no fake clock.
func (r *rig) pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

// A worker is a client that writes down what it does and is told.
type worker struct {
	*holdfast.Client
	r   *rig
	rec *history.Recorder
}

// client makes a worker; wrap may put something between it and master i.
func (r *rig) client(change func(*holdfast.Config), wrap func(i int, s store.Store) store.Store) *worker {
	r.Helper()
	proc := fmt.Sprintf("p%d", len(r.workers))
	rec, err := history.Create(r.dir, proc)
	if err != nil {
		r.Fatal(err)
	}
	stores := make([]store.Store, len(r.masters))
	for i, master := range r.masters {
		rdb := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1, DialerRetries: 1})
		r.Cleanup(func() { _ = rdb.Close() })
		stores[i] = redisstore.New(rdb)
		if wrap != nil {
			stores[i] = wrap(i, stores[i])
		}
	}
	config := &holdfast.Config{Label: proc, Prefix: "proof", MaxTTL: maxTTL, TTL: maxTTL}
	if change != nil {
		change(config)
	}
	client, err := holdfast.NewQuorum(stores, config)
	if err != nil {
		r.Fatal(err)
	}
	w := &worker{Client: client, r: r, rec: rec}
	r.workers = append(r.workers, w)
	return w
}

// warm makes a client know the masters.
func warm(r *rig, w *worker) {
	r.Helper()
	h, err := w.lock("warm", harness.Patience)
	if err != nil {
		r.Fatal(err)
	}
	if err := h.release(); err != nil {
		r.Fatal(err)
	}
}

// check closes all clients and looks for violations.
func (r *rig) check() history.Summary {
	r.Helper()
	var all sync.WaitGroup
	for _, w := range r.workers {
		all.Go(func() {
			w.rec.Put(history.Record{Event: history.Close})
			if err := w.Close(); err != nil && !errors.Is(err, holdfast.ErrUncertain) &&
				!errors.Is(err, holdfast.ErrLost) {
				r.Errorf("Close: %v", err)
			}
			if err := w.rec.Close(); err != nil {
				r.Error(err)
			}
		})
	}
	all.Wait()
	records, err := history.Load(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	h, err := history.Assemble(records)
	if err != nil {
		r.Fatal(err)
	}
	// Masters that are away, or do not count yet, explain a wait that no record does; and a quorum
	// keeps no queue.
	for i, v := range history.Check(h, history.Limits{Idle: time.Minute}) {
		if i < 10 {
			r.Errorf("violation %v", v)
		}
	}
	return history.Summarize(h)
}

// A hold is a lease with what the history calls it.
type hold struct {
	*holdfast.Lease
	w        *worker
	id, name string
}

// lock takes a lock, or returns the error.
func (w *worker) lock(name string, limit time.Duration, options ...holdfast.Option) (*hold, error) {
	return w.take(history.Lock, name, limit, w.Mutex(name, options...).Lock)
}

// try tries a lock once.
func (w *worker) try(name string, options ...holdfast.Option) (*hold, error) {
	return w.take(history.TryLock, name, 5*time.Second, w.Mutex(name, options...).TryLock)
}

// first takes a lock that is free with one try, and waits for it only where some master did not
// answer in time.
func (w *worker) first(name string, options ...holdfast.Option) (*hold, error) {
	h, err := w.try(name, options...)
	if unanswered(err) {
		return w.lock(name, harness.Patience, options...)
	}
	return h, err
}

// answer tries a lock until a majority answers.
func (w *worker) answer(name string, options ...holdfast.Option) (h *hold, err error) {
	w.r.Helper()
	w.r.until("a majority answers", func() bool {
		h, err = w.try(name, options...)
		return !unanswered(err)
	})
	return h, err
}

// unanswered reports whether an error may come of one that stood still for longer than a request
// may take.
func unanswered(err error) bool {
	var none *holdfast.QuorumError
	return errors.Is(err, holdfast.ErrUnavailable) &&
		(!errors.As(err, &none) || slices.ContainsFunc(none.Masters,
			func(n lockinfo.Master) bool { return n.Err != nil }))
}

func (w *worker) take(kind history.Kind, name string, limit time.Duration,
	take func(context.Context) (*holdfast.Lease, error)) (*hold, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	op := w.rec.NextOp()
	record := history.Record{Op: op, Kind: kind, Name: name, Hold: w.rec.HoldID(op), Event: history.Call,
		Limit: int64(limit)}
	w.rec.Put(record)
	lease, err := take(ctx)
	record.Event, record.Limit, record.Result = history.Return, 0, history.OK
	if err != nil {
		record.Result, record.Text = history.Unavailable, err.Error()
		w.rec.Put(record)
		return nil, err
	}
	record.At, record.Until, record.Token = history.Now(), until(lease), lease.Token()
	w.rec.Put(record)
	return &hold{Lease: lease, w: w, id: record.Hold, name: name}, nil
}

// until is the trust end, translated such that a delay in between makes it earlier.
func until(l *holdfast.Lease) int64 {
	now := history.Now()
	return now + int64(time.Until(l.Until()))
}

// look writes down what the library says of the lease, and returns that.
func (h *hold) look() error {
	record := history.Record{Hold: h.id, Name: h.name, Token: h.Token()}
	err := h.Err()
	record.At, record.Until, record.Event = history.Now(), until(h.Lease), history.Trust
	if err != nil {
		record.Event, record.Text = history.Lost, err.Error()
	}
	h.w.rec.Put(record)
	return err
}

// keep holds for so long, or until the lease is lost, and looks again and again.
func (h *hold) keep(long time.Duration) (lost error) {
	for end := time.Now().Add(long); ; {
		if err := h.look(); err != nil {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		select {
		case <-time.After(min(left, 3*time.Millisecond)):
		case <-h.Done():
		}
	}
}

// release gives the lease back.
func (h *hold) release() error {
	_ = h.look()
	record := history.Record{Op: h.w.rec.NextOp(), Kind: history.Release, Name: h.name, Hold: h.id, Token: h.Token(),
		Event: history.Call, Limit: int64(5 * time.Second)}
	h.w.rec.Put(record)
	err := h.Release()
	record.Event, record.Limit, record.Result = history.Return, 0, history.OK
	switch {
	case err == nil:
	case errors.Is(err, holdfast.ErrUncertain):
		record.Result = history.Uncertain
	default:
		record.Result = history.LeaseLost
	}
	h.w.rec.Put(record)
	return err
}

// load locks, holds and releases until the context ends, and counts what it held.
func (w *worker) load(ctx context.Context, names []string) (holds int) {
	for ctx.Err() == nil {
		options := []holdfast.Option{holdfast.WithTTL([]time.Duration{300 * time.Millisecond, 600 * time.Millisecond,
			2 * time.Second}[rand.IntN(3)])}
		if rand.IntN(4) == 0 {
			options = append(options, holdfast.WithoutRenewal())
		}
		h, err := w.lock(names[rand.IntN(len(names))], time.Second, options...)
		if err != nil {
			continue
		}
		holds++
		long := rand.N(10 * time.Millisecond)
		if rand.IntN(20) == 0 {
			long = rand.N(time.Second)
		}
		_ = h.keep(long)
		_ = h.release()
	}
	return holds
}
