package moving

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/moving"
	"github.com/holdfast-go/holdfast/redisstore"
)

// workerEnv has the plan of a worker, which is this program.
const workerEnv = "HOLDFAST_MOVING_WORKER"

// The releases of a worker. The last two are wrong on purpose.
const (
	before     = "N-1"
	between    = "N"
	after      = "N+1"
	oldEarly   = "old-lock-released-early"
	withoutNew = "old-lock-alone"
)

// The marks are the moments of release N at which a worker may be killed.
const (
	holdfastHeld = "holdfast-held"
	bothHeld     = "both-held"
	oldReleased  = "old-released"
)

// A plan is what a worker does, again and again until its standard input ends.
type plan struct {
	Worker, Library, Release string
	Redis, Etcd, Section     string
	Once                     bool // visits the section at once, without a lock
}

// The times of release N: short, as a killed holder is replaced after the larger one.
const (
	newTTL = 3 * time.Second
	oldTTL = 4 * time.Second
)

// An old is an old library: how release N-1 locks with it, and how release N does.
type old struct {
	only, under func(ctx context.Context, work func(context.Context) error) error
}

func (p plan) old(ctx context.Context, rdb *redis.Client) (old, error) {
	type work = func(context.Context) error
	switch p.Library {
	case "redsync":
		lib := redsync.New(goredis.NewPool(rdb))
		return old{
			func(ctx context.Context, w work) error { return moving.OnlyRedsync(ctx, lib, w) },
			func(ctx context.Context, w work) error { return moving.UnderRedsync(ctx, lib, "order:42", oldTTL, w) },
		}, nil
	case "redislock":
		lib := redislock.New(rdb)
		return old{
			func(ctx context.Context, w work) error { return moving.OnlyRedislock(ctx, lib, w) },
			func(ctx context.Context, w work) error {
				return moving.UnderRedislock(ctx, lib, "order:42", oldTTL, w)
			},
		}, nil
	case "rueidislock":
		lib, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{p.Redis}}, KeyValidity: oldTTL,
			TryNextAfter: time.Second,
		})
		return old{
			func(ctx context.Context, w work) error { return impatient(ctx, lib, w) },
			func(ctx context.Context, w work) error { return moving.UnderRueidislock(ctx, lib, "order:42", w) },
		}, err
	default:
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.Etcd}, DialTimeout: 30 * time.Second})
		if err != nil {
			return old{}, err
		}
		session, err := concurrency.NewSession(client, concurrency.WithTTL(int(oldTTL/time.Second)),
			concurrency.WithContext(ctx))
		return old{
			func(ctx context.Context, w work) error { return moving.OnlyEtcd(ctx, session, w) },
			func(ctx context.Context, w work) error { return moving.UnderEtcd(ctx, session, "/order/42", w) },
		}, err
	}
}

// impatient returns release N-1 with rueidislock. It gives up where WithContext would wait for
// ever. A deadline of ctx would shorten the lock too.
func impatient(ctx context.Context, lib rueidislock.Locker, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(2*time.Second, cancel)
	return moving.OnlyRueidislock(ctx, lib, func(ctx context.Context) error {
		if !timer.Stop() {
			return ctx.Err()
		}
		return work(ctx)
	})
}

// worker runs as a process of a release.
func worker() error {
	var p plan
	if err := json.Unmarshal([]byte(os.Getenv(workerEnv)), &p); err != nil {
		return err
	}
	at, err := dial(p.Section, p.Worker, p.Release)
	if err != nil {
		return err
	}
	if p.Once {
		return visitOnce(at)
	}
	rdb := redis.NewClient(&redis.Options{Addr: p.Redis})
	client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{TTL: newTTL, Label: p.Worker})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lib, err := p.old(context.Background(), rdb)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	for ctx.Err() == nil {
		err := p.once(ctx, client, lib, at)
		if err != nil && os.Getenv("HOLDFAST_VERBOSE") != "" {
			println(p.Worker, p.Release, err.Error())
		}
		<-time.After(rand.N(10 * time.Millisecond))
	}
	return client.Close()
}

// once locks and works once. An error is no failure: the lock was held, or the process is to end.
func (p plan) once(ctx context.Context, client *holdfast.Client, lib old, at *desk) error {
	work := func(ctx context.Context) error { return visited(ctx, at) }
	mutex := client.Mutex("order:42")
	switch p.Release {
	case before:
		return lib.only(ctx, work)
	case between:
		return mutex.Do(ctx, func(ctx context.Context) error {
			if err := at.at(holdfastHeld); err != nil {
				return err
			}
			err := lib.under(ctx, work)
			return errors.Join(err, at.at(oldReleased))
		})
	case after:
		return mutex.Do(ctx, work)
	case oldEarly:
		return mutex.Do(ctx, func(ctx context.Context) error {
			if err := lib.under(ctx, func(context.Context) error { return nil }); err != nil {
				return err
			}
			return work(ctx)
		})
	case withoutNew:
		return lib.under(ctx, work)
	}
	return errors.New("unknown release " + p.Release)
}

// visited does the work under a lock.
func visited(ctx context.Context, at *desk) error {
	token := int64(0)
	if lease, ok := holdfast.LeaseFrom(ctx); ok {
		token = lease.Token()
	}
	return at.visit(token)
}

// visitOnce does the work of a command, such as that of holdfast run or flock.
func visitOnce(at *desk) error {
	token, _ := strconv.ParseInt(os.Getenv("HOLDFAST_TOKEN"), 10, 64)
	return at.visit(token)
}

// visit stays inside for some milliseconds. It looks at no context, so that a lock that ends too
// early is noticed.
func (d *desk) visit(token int64) error {
	if err := d.enter(token); err != nil {
		return err
	}
	if err := d.at(bothHeld); err != nil {
		return err
	}
	<-time.After(rand.N(8 * time.Millisecond))
	return d.leave()
}
