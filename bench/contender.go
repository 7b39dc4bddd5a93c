package main

import (
	"context"
	"slices"
	"time"
)

// ttl is the lease time that every contender asks for.
const ttl = 15 * time.Second

// A contender is one way to exclude others. It is used by many goroutines at once.
type contender struct {
	// lock waits until name is held, and returns what gives it back.
	lock  func(ctx context.Context, name string) (unlock func() error, err error)
	close func() error

	// rlock and wlock are lock as those have it who share, and who exclude them; nil: not measured.
	rlock, wlock func(ctx context.Context, name string) (unlock func() error, err error)

	// value returns when the value of a name is there, which make makes if nobody else does.
	value func(ctx context.Context, name string, make func()) error

	// seed prepares a name before anyone can lock it; nil: nothing has to be prepared.
	seed func(ctx context.Context, name string) error
}

// A target says where a contender works, and how.
type target struct {
	Addr string
	Poll time.Duration // how often a contender asks that has to ask
}

// An entry is a line of the table: a contender, and where it takes part.
type entry struct {
	name  string
	rows  []int
	sends []string // plain commands it sends, beyond scripts; see sent
	open  func(target) (contender, error)

	// cancellable makes every operation have a context of its own that can be cancelled, as in a
	// service.
	cancellable bool

	waiters int  // of row 11: how many goroutines want the name
	unused  bool // of row 10: one takes what the other retains and does not use

	steps []step // of row 14, the last of which is measured
}

// entries has all contenders, the references first.
var entries = []entry{
	{name: "bare pair", rows: []int{1, 2, 3, 4, 5, 8}, sends: []string{"set"}, open: openBare},
	{name: "baton", rows: []int{4, 5}, sends: []string{"blpop", "rpush"}, open: openBaton},
	{name: "sync.Mutex", rows: []int{3}, open: openLocal},
	{name: "redislock", rows: []int{1, 2, 3, 4, 5, 8, 12}, open: openRedislock},
	{name: "redsync", rows: []int{1, 2, 3, 4, 5}, sends: []string{"set"}, open: openRedsync},
	{name: "rueidislock", rows: []int{1, 2, 3, 4, 5}, open: openRueidislock},
	{name: subject, rows: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12}, open: openHoldfast},
	{name: subject + ", ctx with cancel", rows: []int{1}, open: openHoldfast, cancellable: true},
	{name: subject + ", retained", rows: []int{1, 5, 8, 9, 10}, open: openRetained},
	{name: subject + ", retained and unused", rows: []int{10}, open: openRetained, unused: true},
	{name: subject + ", history", rows: []int{6, 7}, sends: []string{"xadd"}, open: openWithHistory},
	{name: "2 in strict order", rows: []int{11}, open: openStrict, waiters: 2},
	{name: "20 in strict order", rows: []int{11}, open: openStrict, waiters: 20},
	{name: "200 in strict order", rows: []int{11}, open: openStrict, waiters: 200},
	{name: byHand, rows: []int{13}, open: openValuesByHand},
	{name: "rueidisaside", rows: []int{13}, open: openRueidisaside},
	{name: subject + ", flight", rows: []int{13}, open: openFlight},
	{name: "acquire", rows: []int{14}, open: openHoldfast, steps: []step{acquire}},
	{name: "release", rows: []int{14}, open: openHoldfast, steps: []step{acquire, giveBack}},
	{name: "acquire that queues", rows: []int{14}, open: openHoldfast, steps: []step{block, join}},
	{name: "hand-over, and its renewal", rows: []int{14}, open: openHoldfast, steps: []step{block, join, handOver}},
	{name: "recall, and what follows", rows: []int{14}, open: openRetained, steps: []step{retain, block}},
	{name: "5 s of waiting", rows: []int{14}, open: openHoldfast, steps: []step{block, join, live}},
	{name: "renewal", rows: []int{14}, open: openShort, steps: []step{acquire, renewAll}},
}

func (e entry) takesPart(row int) bool { return slices.Contains(e.rows, row) }

// prepare makes name ready to be locked.
func (c contender) prepare(ctx context.Context, name string) error {
	if c.seed == nil {
		return nil
	}
	return c.seed(ctx, name)
}

// pair locks and unlocks name once.
func (c contender) pair(ctx context.Context, name string) error {
	unlock, err := c.lock(ctx, name)
	if err != nil {
		return err
	}
	return unlock()
}
