package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

const (
	pairs     = 100             // SET NX PX and DEL; acquire and release
	handOvers = 20              // from one client to another
	lockTime  = 2 * time.Second // for each of the three
	probeTTL  = 10 * time.Second
)

// A storeSource makes stores of probes, which remember what is to be deleted.
type storeSource func(redis.UniversalClient) store.Store

// locks measures a lock beside the bare pair of commands. It needs the permissions of a lock.
func (p *serverCheck) locks(ctx context.Context, rdb redis.UniversalClient) {
	if err := p.checkCommands("eval", "evalsha", "set", "del", "get", "time"); err != nil {
		p.notTried(err.Error())
		return
	}
	bare, err := barePairs(ctx, rdb, p.key())
	if err != nil {
		p.notTaken(err)
		return
	}
	p.tryLocks(ctx, bare, func(newStore storeSource, config *holdfast.Config) (*holdfast.Client, error) {
		return holdfast.New(newStore(rdb), config)
	})
}

func (p *serverCheck) notTried(why string) {
	p.add(Unknown, "lock", "not tried: "+why, "whether a lock can be taken is not known", "see permissions")
}

func (p *serverCheck) notTaken(err error) {
	change := "see the findings above"
	var failure *holdfast.StoreError
	if errors.As(err, &failure) && failure.Kind == holdfast.StoreUnsupported {
		change = "take a server with a script engine and all commands: Valkey 9.1 has the engine as its module lua"
	}
	p.add(Danger, "lock", "no lock could be taken: "+trimError(err), "the programs cannot take one either", change)
}

// tryLocks measures locks of two clients, and deletes the keys of both.
func (p *serverCheck) tryLocks(
	ctx context.Context, bare []time.Duration, connect func(storeSource, *holdfast.Config) (*holdfast.Client, error),
) {
	var recorders []*recorder
	newStore := func(rdb redis.UniversalClient) store.Store {
		recorders = append(recorders, &recorder{Store: redisstore.New(rdb), rdb: rdb, prefix: p.prefix})
		return recorders[len(recorders)-1]
	}
	probes := make([]*probe, 2)
	for i := range probes {
		one := &probe{waiting: make(chan struct{}, 1)}
		one.client, one.err = connect(newStore, &holdfast.Config{Prefix: p.prefix, TTL: probeTTL,
			Label: "holdfast doctor", Observer: observer(one.waiting), ReleaseTimeout: requestTime})
		probes[i] = one
	}
	if err := p.measureLocks(ctx, bare, probes[0], probes[1]); err != nil {
		p.notTaken(err)
	}
	for _, probe := range probes {
		if probe.client != nil {
			_ = probe.client.Close()
		}
	}
	for _, r := range recorders {
		removeKeys(ctx, r.rdb, r.named())
	}
}

// trimError is an error without the name of the library.
func trimError(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "holdfast: "), ": holdfast: ", ": ")
}

// A probe is a client of the library, with a prefix of its own.
type probe struct {
	client  *holdfast.Client
	waiting chan struct{} // receives when a caller stands in the queue
	err     error
}

// An observer tells of waiting.
type observer chan struct{}

// Observe implements holdfast.Observer.
func (o observer) Observe(e holdfast.Event) {
	if e.Kind == holdfast.EventWaiting {
		select {
		case o <- struct{}{}:
		default:
		}
	}
}

// measureLocks measures acquire and release, and the hand-over from one client to another.
func (p *serverCheck) measureLocks(ctx context.Context, bare []time.Duration, a, b *probe) error {
	if err := errors.Join(a.err, b.err); err != nil {
		return err
	}
	const name = "probe"
	acquired, err := acquirePairs(ctx, a.client, name)
	if err != nil {
		return err
	}
	handed, err := handOver(ctx, a, b, name)
	if err != nil {
		return err
	}
	said := func(of []time.Duration) string {
		p50, p99 := percentiles(of)
		return fmt.Sprintf("p50 %v, p99 %v", p50, p99)
	}
	found := fmt.Sprintf("acquire and release: %s; hand-over: %s", said(acquired), said(handed))
	if len(bare) > 0 {
		found += "; SET NX PX and DEL: " + said(bare)
	}
	p50, _ := percentiles(handed)
	p.note(p50 <= slowTrip, "lock", found, "waiters get in late: a hand-over should cost about one round trip",
		"see messages and round trip")
	return nil
}

// barePairs measures what any lock costs: SET NX PX and DEL.
func barePairs(ctx context.Context, rdb redis.UniversalClient, key string) (took []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime+requestTime)
	defer cancel()
	defer removeKeys(ctx, rdb, []string{key})
	for began := time.Now(); len(took) < pairs && time.Since(began) < lockTime; {
		at := time.Now()
		if err := rdb.SetNX(ctx, key, "x", probeTTL).Err(); err != nil {
			return nil, err
		}
		if err := rdb.Del(ctx, key).Err(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(at))
	}
	return took, nil
}

// acquirePairs measures Lock and Release of a free lock.
func acquirePairs(ctx context.Context, client *holdfast.Client, name string) (took []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime+requestTime)
	defer cancel()
	mutex := client.Mutex(name)
	for began := time.Now(); len(took) < pairs && time.Since(began) < lockTime; {
		at := time.Now()
		lease, err := mutex.TryLock(ctx)
		if err != nil {
			return nil, err
		}
		if err := lease.Release(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(at))
	}
	return took[1:], nil // the first one loads the scripts
}

// handOver measures the time from a release to the waiter's grant.
func handOver(ctx context.Context, a, b *probe, name string) (took []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime+3*requestTime)
	defer cancel()
	for began := time.Now(); len(took) < handOvers && time.Since(began) < lockTime; {
		one, err := handOverOnce(ctx, a, b, name)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, nil
}

func handOverOnce(ctx context.Context, a, b *probe, name string) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	held, err := a.client.Mutex(name).Lock(ctx)
	if err != nil {
		cancel()
		return 0, err
	}
	var waiter sync.WaitGroup
	defer waiter.Wait()
	defer cancel()
	type grant struct {
		lease *holdfast.Lease
		at    time.Time
		err   error
	}
	granted := make(chan grant, 1)
	waiter.Go(func() {
		lease, err := b.client.Mutex(name).Lock(ctx)
		granted <- grant{lease, time.Now(), err}
	})
	select {
	case <-b.waiting:
	case g := <-granted:
		return 0, errors.Join(errors.New("a lock was granted twice"), g.err, held.Release())
	case <-ctx.Done():
		return 0, errors.Join(ctx.Err(), held.Release())
	}
	at := time.Now()
	if err := held.Release(); err != nil {
		return 0, err
	}
	g := <-granted
	if g.err != nil {
		return 0, g.err
	}
	return g.at.Sub(at), g.lease.Release()
}

// A recorder is a store that remembers the keys that were named, so that all can be deleted.
type recorder struct {
	store.Store
	rdb    redis.UniversalClient
	prefix string

	mu   sync.Mutex
	keys map[string]bool
}

// Do implements store.Store.
func (r *recorder) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	r.mu.Lock()
	if r.keys == nil {
		r.keys = map[string]bool{}
	}
	for _, command := range commands {
		for _, word := range command {
			if text, ok := word.(string); ok && strings.HasPrefix(text, r.prefix+":") {
				r.keys[text] = true
			}
		}
	}
	r.mu.Unlock()
	return r.Store.Do(ctx, node, commands)
}

// named returns the keys that begin with the prefix of the probes.
func (r *recorder) named() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.keys))
}

// removeKeys deletes keys of the probes, also when the examination was interrupted.
func removeKeys(ctx context.Context, rdb redis.UniversalClient, keys []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	for _, key := range keys {
		rdb.Del(ctx, key)
	}
}
