package workload

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/redisstore"
)

// patience is how long keys may outlive the workload where a waiter was killed: the longest TTL,
// the time after which the waiter counts as dead (three missed asks), and the seconds that the
// state of a name outlives all that is in it.
const patience = longestTTL + 3*6*time.Second + 6*time.Second

// clocks are the keys of tokens, which stay, by design.
var clocks = regexp.MustCompile(`:\{[0-9a-z]+\}:clock$|:clock:\{[0-9a-z]+\}$`)

// A Rest is what was left at the server.
type Rest struct {
	Dead    []string // when all TTLs were over, of killed workers: places in the queue that wait for their end
	Leaked  []string // then, of workers that ended well, and were not disturbed in that: should be none
	Forever []string // keys without an expiry, at any moment of the run, or with one beyond patience: should be none
	Looks   int      // during the run, for keys without an expiry
	owners  []string // of what leaked
}

// excuseLeaks takes what leaked of some workers for what the dead left: what they gave back may
// have got no answer.
func (rest *Rest) excuseLeaks(disturbed func(proc string) bool) {
	leaked := rest.Leaked
	rest.Leaked = nil
	for i, text := range leaked {
		if disturbed(rest.owners[i]) {
			rest.Dead = append(rest.Dead, text)
		} else {
			rest.Leaked = append(rest.Leaked, text)
		}
	}
}

// labelOf returns what a worker calls itself in its keys.
func labelOf(proc string) string { return "worker " + proc + "." }

// findLeftKeys looks at the keys of the plan when all TTLs are over. ended are the workers that
// were not killed.
func findLeftKeys(ctx context.Context, plan Plan, ended []string) (rest Rest, err error) {
	rdb := redis.NewClient(&redis.Options{Addr: plan.Addr})
	defer func() { err = errors.Join(err, rdb.Close()) }()
	pause(longestTTL, ctx.Done())
	if err := tryEachLock(ctx, rdb, plan); err != nil {
		return rest, err
	}
	keys, err := listKeys(ctx, rdb, plan.Prefix)
	for _, key := range keys {
		rest.classifyKey(key, showKey(ctx, rdb, key), rdb.PTTL(ctx, key).Val(), ended)
	}
	return rest, err
}

// tryEachLock tries every lock once: a hold whose time is over stays in the state of a name until
// somebody asks.
func tryEachLock(ctx context.Context, rdb *redis.Client, plan Plan) (err error) {
	client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{Label: "sweep", Prefix: plan.Prefix,
		TTL: 6 * longestTTL}) // a request has a second
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for typ, names := range plan.Names {
		if typ == history.Latch {
			continue // it needs no asking
		}
		for _, name := range names {
			err := tryLock(ctx, client, typ, name)
			for n := 0; errors.Is(err, holdfast.ErrUnavailable) && n < 10; n++ { // a machine too busy to answer in time
				err = tryLock(ctx, client, typ, name)
			}
			if err != nil {
				return fmt.Errorf("workload: sweep %s %q: %w", typ, name, err)
			}
		}
	}
	return nil
}

// tryLock asks for a name once, and gives it back.
func tryLock(ctx context.Context, client *holdfast.Client, typ history.Type, name string) error {
	lease, err := history.WayOf(client, history.Record{
		Kind: history.TryLock, Type: typ, Name: name, Size: permits, Weight: 1})(ctx)
	var refused *holdfast.ArgumentError // of an earlier version's number of permits
	switch {
	case err == nil:
		return lease.Release()
	case errors.Is(err, holdfast.ErrHeld), typ == history.Semaphore && errors.As(err, &refused):
		return nil
	}
	return err
}

// classifyKey says what the presence of a key means.
func (rest *Rest) classifyKey(key, content string, expires time.Duration, ended []string) {
	text := fmt.Sprintf("%s, for another %v: %s", key, expires, content)
	switch {
	case expires == -2: // gone meanwhile
		return
	case expires < 0 || expires > patience:
		rest.Forever = append(rest.Forever, text)
		return
	}
	for _, proc := range ended {
		if strings.Contains(content, labelOf(proc)) {
			rest.Leaked, rest.owners = append(rest.Leaked, text), append(rest.owners, proc)
			return
		}
	}
	rest.Dead = append(rest.Dead, text)
}

func listKeys(ctx context.Context, rdb *redis.Client, prefix string) ([]string, error) {
	var keys []string
	each := rdb.Scan(ctx, 0, prefix+":*", 1000).Iterator()
	for each.Next(ctx) {
		if !clocks.MatchString(each.Val()) {
			keys = append(keys, each.Val())
		}
	}
	if err := each.Err(); err != nil {
		return nil, fmt.Errorf("workload: what is left: %w", err)
	}
	return keys, nil
}

// showKey shows a key of any type that locks have.
func showKey(ctx context.Context, rdb *redis.Client, key string) string {
	if text, err := rdb.Get(ctx, key).Result(); err == nil {
		return text
	}
	if fields, err := rdb.HGetAll(ctx, key).Result(); err == nil {
		return fmt.Sprint(fields)
	}
	members, err := rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, member := range members {
		fmt.Fprintf(&b, "\n    %18.0f %v", member.Score, member.Member)
	}
	return b.String()
}

// watchExpiries looks at the keys again and again, and tells those that have no expiry: there must
// be none, at no moment.
func watchExpiries(ctx context.Context, plan Plan) (forever []string, looks int, err error) {
	rdb := redis.NewClient(&redis.Options{Addr: plan.Addr})
	defer func() { err = errors.Join(err, rdb.Close()) }()
	seen := map[string]bool{}
	for ctx.Err() == nil {
		keys, err := listKeys(ctx, rdb, plan.Prefix) // which the faults of the server interrupt
		if err == nil {
			looks++
		}
		for _, key := range keys {
			if !seen[key] && rdb.PTTL(ctx, key).Val() == -1 {
				seen[key] = true
				forever = append(forever, fmt.Sprintf("%s had no expiry: %s", key, showKey(ctx, rdb, key)))
			}
		}
		pause(20*time.Millisecond, ctx.Done())
	}
	return forever, looks, nil
}
