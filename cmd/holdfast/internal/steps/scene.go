package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/redisstore"
)

// The name that all processes lock, and the life of each hold. The TTL has room for a machine that
// stands still for a moment.
const (
	lockName    = "lock:order"
	storageName = "order" // what the lock protects
	ttl         = 1500 * time.Millisecond
)

// shown is how long two processes that are inside together are left so.
const shown = 300 * time.Millisecond

// A scene is the place of one play. A play uses it from one goroutine. After the first failure its
// methods do nothing.
type scene struct {
	ctx       context.Context
	config    Config
	timeline  *timeline
	processes []*process
	closers   []func()

	mu  sync.Mutex
	err error // the first failure
}

func newScene(ctx context.Context, c Config) *scene {
	return &scene{ctx: ctx, config: c, timeline: newTimeline(c.Out)}
}

// fail notes the first failure.
func (s *scene) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// failure returns the first failure. The end of the context is one.
func (s *scene) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
	}
	return s.err
}

// ok reports whether the play can go on.
func (s *scene) ok() bool { return s.failure() == nil }

// say adds a line about what the play does.
func (s *scene) say(format string, args ...any) {
	if s.ok() {
		s.timeline.add(time.Now(), "", fmt.Sprintf(format, args...))
	}
}

// until waits for an event.
func (s *scene) until(event <-chan struct{}) {
	if !s.ok() {
		return
	}
	select {
	case <-event:
	case <-s.ctx.Done():
	}
}

// pass lets time pass, such as that in which nothing is to happen.
func (s *scene) pass(d time.Duration) {
	if !s.ok() {
		return
	}
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}

// A node is a server of a scene.
type node struct {
	*server.Server
	addr   string
	rdb    *redis.Client // for looks at its keys
	client *holdfast.Client
}

// node starts an empty server.
func (s *scene) node() *node { return s.nodeAt("127.0.0.1:0") }

func (s *scene) nodeAt(addr string) *node {
	if !s.ok() {
		return &node{}
	}
	embedded, err := server.EmbedAt(addr)
	if err != nil {
		s.fail(err)
		return &node{}
	}
	n := &node{Server: embedded, addr: strings.TrimPrefix(embedded.URL, "redis://")}
	n.rdb = redis.NewClient(&redis.Options{Addr: n.addr, MaxRetries: -1})
	if n.client, err = holdfast.New(redisstore.New(n.rdb), nil); err != nil {
		s.fail(err)
	}
	s.closers = append(s.closers, func() { _ = n.client.Close(); _ = n.rdb.Close(); _ = n.Stop() })
	return n
}

// nodeBehind starts an empty server whose clock is behind.
func (s *scene) nodeBehind(behind time.Duration) *node {
	n := s.node()
	if s.ok() {
		n.SetBehind(behind)
	}
	return n
}

// crash ends a server at once, with all that it has.
func (n *node) crash() {
	if n.Server != nil {
		_ = n.Stop()
	}
}

// look returns the answer to a command, as text.
func (s *scene) look(n *node, args ...any) string {
	if !s.ok() {
		return ""
	}
	value, err := n.rdb.Do(s.ctx, args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		s.fail(err)
	}
	return reply(value)
}

// waiters waits until so many wait for the name, with holdfast.
func (s *scene) waiters(n *node, want int) {
	s.poll(func() (bool, error) {
		info, err := n.client.Inspect(s.ctx, lockName)
		return info.Waiters == want, err
	})
}

// subscribers waits until so many listen to the channel of the naive herd.
func (s *scene) subscribers(n *node, want int) {
	s.poll(func() (bool, error) {
		counts, err := n.rdb.PubSubNumSub(s.ctx, lockName+":free").Result()
		return counts[lockName+":free"] == int64(want), err
	})
}

// gone waits until the key of the naive lock has expired.
func (s *scene) gone(n *node) {
	s.poll(func() (bool, error) {
		there, err := n.rdb.Exists(s.ctx, lockName).Result()
		return there == 0, err
	})
}

// settled waits until a node gets no more commands, and returns how many it has got. It counts its
// looks, and not the time: all processes may have stood still.
func (s *scene) settled(n *node, clients ...string) (commands int) {
	const enough = 20
	same := 0
	s.poll(func() (bool, error) {
		same++
		if now := n.total(clients); now != commands {
			commands, same = now, 0
		}
		return same == enough, nil
	})
	return commands
}

// total is how many commands the clients have sent.
func (n *node) total(clients []string) (commands int) {
	if n.Server == nil {
		return 0 // of a scene that failed
	}
	for _, client := range clients {
		commands += n.Commands(client)
	}
	return commands
}

// poll waits until something is so.
func (s *scene) poll(is func() (bool, error)) {
	for s.ok() {
		done, err := is()
		if err != nil {
			s.fail(err)
		}
		if done || err != nil {
			return
		}
		s.pass(10 * time.Millisecond)
	}
}

// network makes a way to a server that the play can disturb.
func (s *scene) network(n *node) *network {
	if !s.ok() {
		return &network{}
	}
	w, err := newNetwork(n.addr)
	if err != nil {
		s.fail(err)
		return &network{}
	}
	s.closers = append(s.closers, w.close)
	return w
}

// end stops the processes and then everything that they used. The tenures are complete then.
func (s *scene) end() {
	for _, p := range s.processes {
		p.end()
	}
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

// Config is what a run of steps needs.
type Config struct {
	Command       []string // starts one process: a program that calls Work, and its arguments
	Out           io.Writer
	Stderr        io.Writer // of the processes
	Pause, Resume os.Signal // stop a process and continue it; nil where none does
}
