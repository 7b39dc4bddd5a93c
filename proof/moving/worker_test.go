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

func (p plan) library(ctx context.Context, rdb *redis.Client) (moving.Library, error) {
	switch p.Library {
	case "redsync":
		return moving.Redsync(redsync.New(goredis.NewPool(rdb)), oldTTL), nil
	case "redislock":
		return moving.Redislock(redislock.New(rdb), oldTTL), nil
	case "rueidislock":
		old, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{p.Redis}}, KeyValidity: oldTTL,
			TryNextAfter: time.Second,
		})
		library := moving.Rueidislock(old)
		library.Only = impatient(library.Only)
		return library, err
	default:
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.Etcd}, DialTimeout: 30 * time.Second})
		if err != nil {
			return moving.Library{}, err
		}
		session, err := concurrency.NewSession(client, concurrency.WithTTL(int(oldTTL/time.Second)),
			concurrency.WithContext(ctx))
		return moving.Etcd(session), err
	}
}

// An acquisition runs work under a lock.
type acquisition = func(ctx context.Context, work func(context.Context) error) error

// impatient gives up where rueidislock's WithContext would wait for ever. A deadline of ctx would
// shorten the lock too.
func impatient(only acquisition) acquisition {
	return func(ctx context.Context, work func(context.Context) error) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		timer := time.AfterFunc(2*time.Second, cancel)
		return only(ctx, func(ctx context.Context) error {
			if !timer.Stop() {
				return ctx.Err()
			}
			return work(ctx)
		})
	}
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
	library, err := p.library(context.Background(), rdb)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	for ctx.Err() == nil {
		err := p.once(ctx, client, library, at)
		if err != nil && os.Getenv("HOLDFAST_VERBOSE") != "" {
			println(p.Worker, p.Release, err.Error())
		}
		<-time.After(rand.N(10 * time.Millisecond))
	}
	return client.Close()
}

// once locks and works once. An error is no failure: the lock was held, or the process is to end.
func (p plan) once(ctx context.Context, client *holdfast.Client, library moving.Library, at *desk) error {
	work := func(ctx context.Context) error { return visited(ctx, at) }
	mutex := client.Mutex("order:42")
	switch p.Release {
	case before:
		return library.Only(ctx, work)
	case between:
		return mutex.Do(ctx, func(ctx context.Context) error {
			if err := at.at(holdfastHeld); err != nil {
				return err
			}
			err := library.Under(ctx, work)
			return errors.Join(err, at.at(oldReleased))
		})
	case after:
		return mutex.Do(ctx, work)
	case oldEarly:
		return mutex.Do(ctx, func(ctx context.Context) error {
			if err := library.Under(ctx, func(context.Context) error { return nil }); err != nil {
				return err
			}
			return work(ctx)
		})
	case withoutNew:
		return library.Under(ctx, work)
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
