package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
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
	harness.Deployment
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
	r := &rig{T: t, dir: t.TempDir()}
	r.Topology, r.Prefix = harness.Quorum, "proof"
	return r
}

func (r *rig) start(n int, opts ...string) *rig {
	r.Helper()
	for range n {
		r.add(redisserver.Start(r.T, opts...))
	}
	return r
}

func (r *rig) add(master *redisserver.Server) {
	r.Masters, r.Addrs = append(r.Masters, master), append(r.Addrs, master.Addr())
}

// restart ends masters with kill -9, and starts them again.
func (r *rig) restart(masters ...*redisserver.Server) {
	r.Helper()
	for _, master := range masters {
		fatal.If(r, master.Restart())
	}
}

// found makes all masters count.
func (r *rig) found() *rig {
	r.Helper()
	founder, judge := r.client(holdfast.Config{TrustNewNodes: true}, nil), r.client(holdfast.Config{}, nil)
	r.until("masters count for all", func() bool { // for the founder they do at once
		r.quorumOf(founder)
		return r.count(judge) == len(r.Masters)
	})
	if err := founder.Close(); err != nil { // what it has on its way would let a master that forgets count again
		r.Fatal(err)
	}
	return r
}

// whole waits until all masters count, for a client.
func (r *rig) whole(w *worker) {
	r.Helper()
	r.until("masters count", func() bool { return r.count(w) == len(r.Masters) })
}

func (r *rig) quorumOf(w *worker) []lockinfo.Master {
	r.Helper()
	masters, err := w.Quorum(r.Context())
	fatal.If(r, err)
	return masters
}

// count returns how many masters count for a client.
func (r *rig) count(w *worker) int {
	r.Helper()
	return len(slices.DeleteFunc(r.quorumOf(w), func(m lockinfo.Master) bool { return !m.Counts }))
}

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

// client makes a worker; its requests come late by a lag, or not.
func (r *rig) client(config holdfast.Config, late *lag) *worker {
	r.Helper()
	proc := fmt.Sprintf("p%d", len(r.workers))
	rec, err := history.Create(r.dir, proc)
	fatal.If(r, err)
	config.Label = cmp.Or(config.Label, proc)
	config.TTL = cmp.Or(config.TTL, maxTTL)
	servers := r.Deployment
	if late != nil {
		servers.On = func(s store.Store) store.Store { return &lagging{Store: s, lag: late} }
	}
	w := &worker{Client: servers.Client(r.T, config), r: r, rec: rec}
	r.workers = append(r.workers, w)
	return w
}

// warm makes a client that knows the masters.
func (r *rig) warm(late *lag) *worker {
	r.Helper()
	w := r.client(holdfast.Config{}, late)
	w.meet()
	return w
}

// meet makes a client know the masters.
func (w *worker) meet() {
	w.r.Helper()
	w.r.giveBack(w.mustLock("warm"))
}

// releaseLimit is how long a release may take.
const releaseLimit = 5 * time.Second

// giveBack releases a lease that is not to be lost.
func (r *rig) giveBack(l *history.Lease) {
	r.Helper()
	if err := l.GiveBack(releaseLimit); err != nil {
		r.Error(err)
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
	// Masters that are away, or do not count yet, explain a wait that no record does; and a quorum
	// keeps no queue.
	h, violations, err := history.Judge(r.dir, time.Minute)
	fatal.If(r, err)
	for _, v := range violations[:min(10, len(violations))] {
		r.Errorf("violation %v", v)
	}
	return history.Summarize(h)
}

func (w *worker) lock(name string, limit time.Duration, options ...holdfast.Option) (*history.Lease, error) {
	return w.take(history.Lock, name, limit, w.Mutex(name, options...).Lock)
}

// mustLock takes a lock that has to be had.
func (w *worker) mustLock(name string, options ...holdfast.Option) *history.Lease {
	w.r.Helper()
	l, err := w.lock(name, harness.Patience, options...)
	fatal.If(w.r, err)
	return l
}

func (w *worker) try(name string) (*history.Lease, error) {
	return w.take(history.TryLock, name, 5*time.Second, w.Mutex(name).TryLock)
}

// answer tries a lock until a majority answers.
func (w *worker) answer(name string) (err error) {
	w.r.Helper()
	w.r.until("a majority answers", func() bool {
		_, err = w.try(name)
		return !unanswered(err)
	})
	return err
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
	take func(context.Context) (*holdfast.Lease, error)) (*history.Lease, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return w.rec.Take(history.Record{Kind: kind, Name: name}, limit,
		func() (*holdfast.Lease, error) { return take(ctx) })
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
		_ = h.Keep(long)
		_ = h.GiveBack(releaseLimit)
	}
	return holds
}

// A lag is what delays the messages between a client and the masters. A request that is late still
// arrives, as on a network, when its sender has given it up.
type lag struct {
	mu       sync.Mutex
	requests time.Duration // at most, at random
	answers  time.Duration // exactly
	all      sync.WaitGroup
}

func (l *lag) set(requests, answers time.Duration) {
	l.mu.Lock()
	l.requests, l.answers = requests, answers
	l.mu.Unlock()
}

func (l *lag) draw() (request, answer time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests > 0 && rand.IntN(3) == 0 { // some are late, and most are not
		request = rand.N(l.requests)
	}
	return request, l.answers
}

type lagging struct {
	store.Store
	lag *lag
}

// Do implements store.Store.
func (s *lagging) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	request, answer := s.lag.draw()
	if request == 0 && answer == 0 {
		return s.Store.Do(ctx, node, commands)
	}
	done := make(chan []store.Reply, 1)
	s.lag.all.Go(func() {
		<-time.After(request)
		late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		replies := s.Store.Do(late, node, commands)
		<-time.After(answer)
		done <- replies
	})
	end, _ := ctx.Deadline()
	select {
	case replies := <-done:
		return replies
	case <-time.After(time.Until(end)):
		replies := make([]store.Reply, len(commands))
		for i := range replies {
			replies[i].Err = context.DeadlineExceeded
		}
		return replies
	}
}
