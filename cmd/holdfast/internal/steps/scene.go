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

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// The name that all processes lock, and the life of each hold. The TTL has room for a machine that
// stands still for a moment.
const (
	lockName = "lock:order"
	ttl      = 1500 * time.Millisecond
)

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
	addr string
	rdb  *redis.Client // for looks at its keys
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
	s.closers = append(s.closers, func() { _ = n.rdb.Close(); _ = n.Stop() })
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
