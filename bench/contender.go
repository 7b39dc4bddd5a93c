package main

import (
	"context"
	"slices"
	"time"
)

// ttl is the lease time that every contender asks for.
const ttl = 15 * time.Second

// A Contender is one way to exclude others. It is used by many goroutines at once.
type Contender interface {
	// Lock waits until name is held, and returns what gives it back.
	Lock(ctx context.Context, name string) (unlock func() error, err error)

	Close() error
}

// A seeder has to prepare a name before anyone can lock it.
type seeder interface {
	Seed(ctx context.Context, name string) error
}

// A target says where a contender works, and how.
type target struct {
	addr    string
	version string        // of the server
	poll    time.Duration // how often a contender asks that has to ask
}

// An entry is a line of the table: a contender, and where it takes part.
type entry struct {
	name  string
	rows  []int
	sends []string // plain commands it sends, beyond scripts; see sent
	open  func(target) (Contender, error)

	// cancellable makes every operation have a context of its own that can be cancelled, as in a
	// service.
	cancellable bool
}

// entries returns all contenders, the references first.
func entries() []entry {
	return []entry{
		{name: "bare pair", rows: []int{1, 2, 3, 4, 5}, sends: []string{"set"}, open: openBare},
		{name: "baton", rows: []int{4, 5}, sends: []string{"blpop", "rpush"}, open: openBaton},
		{name: "message", rows: []int{4, 5}, open: openMessage},
		{name: "message, checked", rows: []int{4, 5}, open: openCheckedMessage},
		{name: "message, self-read", rows: []int{4, 5}, open: openSelfRead},
		{name: "sync.Mutex", rows: []int{3}, open: openLocal},
		{name: "redislock", rows: []int{1, 2, 3, 4, 5}, open: openRedislock},
		{name: "redsync", rows: []int{1, 2, 3, 4, 5}, sends: []string{"set"}, open: openRedsync},
		{name: "rueidislock", rows: []int{1, 2, 3, 4, 5}, open: openRueidislock},
		{name: subject, rows: []int{1, 2, 3, 4, 5}, open: openHoldfast},
		{name: subject + ", ctx with cancel", rows: []int{1}, open: openHoldfast, cancellable: true},
	}
}

// find returns the entry called name.
func find(name string) (entry, bool) {
	for _, e := range entries() {
		if e.name == name {
			return e, true
		}
	}
	return entry{}, false
}

// takesPart reports whether e runs in a row.
func (e entry) takesPart(row int) bool { return slices.Contains(e.rows, row) }

// warm makes connections and loads scripts, on a name that nobody else uses.
func warm(ctx context.Context, c Contender, name string) error {
	if err := seed(ctx, c, name); err != nil {
		return err
	}
	unlock, err := c.Lock(ctx, name)
	if err != nil {
		return err
	}
	return unlock()
}

// seed prepares name, for contenders that need it.
func seed(ctx context.Context, c Contender, name string) error {
	if s, ok := c.(seeder); ok {
		return s.Seed(ctx, name)
	}
	return nil
}
