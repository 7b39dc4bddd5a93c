package shard

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// maxName leaves room for "/4095" in the name of a lock.
const maxName = 1024 - 5

var (
	// ErrNoOwner says that nobody holds a shard.
	ErrNoOwner = errors.New("shard: no process has the shard")

	// ErrMoved is the cause of the end of a context whose shard is to move to another process.
	ErrMoved = errors.New("shard: the shard moves to another process")
)

// A Set is n shards of one name. It is made by New, holds nothing itself, and is safe for
// concurrent use.
type Set struct {
	client *holdfast.Client
	name   string
	n      int
	totals totals
	settings
}

// New makes a Set of so many shards, from 1 to 4,096. It sends nothing and cannot fail: if an
// argument is bad, each method returns an *holdfast.ArgumentError. All processes of a name must
// name the same n. Each Run is a member of its own.
func New(client *holdfast.Client, name string, n int, options ...Option) *Set {
	return &Set{client: client, name: name, n: n, settings: newSettings(options)}
}

// Of returns the shard of a key, from 0: the 64-bit FNV-1a hash of the key, modulo n. It is the
// same in all processes and versions. It is 0 if n is bad.
func (s *Set) Of(key string) int {
	if s == nil || s.n < 1 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum64() % uint64(s.n))
}

// Owner returns the hold of a shard, as the server knows it now: its Label, Host and PID name the
// process. The error matches ErrNoOwner if there is none. Others are those of Client.Inspect.
func (s *Set) Owner(ctx context.Context, shard int) (lockinfo.Hold, error) {
	if err := s.check(ctx, "Set.Owner"); err != nil {
		return lockinfo.Hold{}, err
	}
	if shard < 0 || shard >= s.n {
		return lockinfo.Hold{}, refuse("Set.Owner", holdfast.ArgumentProblem{Argument: "shard", Value: shard,
			Allowed: fmt.Sprintf("from 0 to %d", s.n-1)})
	}
	hold, held, err := s.look(ctx, shard)
	switch {
	case err != nil:
		return lockinfo.Hold{}, err
	case !held:
		return lockinfo.Hold{}, fmt.Errorf("%w %d of %q", ErrNoOwner, shard, s.name)
	}
	return hold, nil
}

// Watch yields the holds of all shards, by shard, and again each time an owner has changed, until
// ctx ends or the loop is left. The hold of a shard without an owner is zero. It reads all shards
// once a second, or every n*10 ms if that is more, and so may miss owners in between. Watch
// waits for a server that is away. The last pair has the error that ended it.
func (s *Set) Watch(ctx context.Context) iter.Seq2[[]lockinfo.Hold, error] {
	return func(yield func([]lockinfo.Hold, error) bool) {
		if err := s.check(ctx, "Set.Watch"); err != nil {
			yield(nil, err)
			return
		}
		pause := max(time.Second, time.Duration(s.n)*10*time.Millisecond)
		var last []lockinfo.Hold
		for {
			holds, err := s.lookAll(ctx)
			switch {
			case err == nil && (last == nil || !slices.EqualFunc(holds, last, isSameOwner)):
				if last = holds; !yield(slices.Clone(holds), nil) {
					return
				}
			case err != nil && !errors.Is(err, holdfast.ErrUnavailable):
				yield(nil, err)
				return
			}
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			case <-time.After(pause):
			}
		}
	}
}

func isSameOwner(a, b lockinfo.Hold) bool { return a.Owner == b.Owner && a.Token == b.Token }

func (s *Set) nameOf(shard int) string { return s.name + "/" + strconv.Itoa(shard) }

// look asks the server for the hold of a shard.
func (s *Set) look(ctx context.Context, shard int) (hold lockinfo.Hold, held bool, err error) {
	info, err := s.client.Inspect(ctx, s.nameOf(shard))
	if err != nil {
		return hold, false, err
	}
	hold, held = info.Holder()
	return hold, held, nil
}

// atOnce is how many requests of one plan are under way at one moment.
const atOnce = 16

// lookAll asks the servers for the holds of all shards.
func (s *Set) lookAll(ctx context.Context) ([]lockinfo.Hold, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	holds, shards := make([]lockinfo.Hold, s.n), make([]int, s.n)
	for i := range shards {
		shards[i] = i
	}
	each(shards, func(i int) {
		hold, _, err := s.look(ctx, i)
		if err != nil {
			cancel(err)
		}
		holds[i] = hold
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return holds, nil
}

// each calls do for each shard, in this order, several at once.
func each(shards []int, do func(shard int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range min(atOnce, len(shards)) {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for _, i := range shards {
		next <- i
	}
	close(next)
	all.Wait()
}
