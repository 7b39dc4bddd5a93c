package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
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

// A play directs a scene. It returns how to judge what happened, for when the scene has ended.
type play func(*scene) (judge func() verdict)

// A scene is the place of one play, which uses it from one goroutine. What fails in a method ends
// the play with a panic that perform recovers, so that plays have no branches for failures.
type scene struct {
	ctx       context.Context
	timeline  *timeline
	processes []*process
	closers   []func()
}

// A failure is the panic of a play that cannot be judged.
type failure struct{ error }

// perform plays once, and returns the verdict. Nothing that it started is left then.
func perform(ctx context.Context, out io.Writer, p play) (verdict, error) {
	s := &scene{ctx: ctx, timeline: newTimeline(out)}
	judge, err := s.direct(p)
	ended := time.Now()
	s.end()
	s.timeline.flush()
	if err != nil {
		return verdict{}, err
	}
	drawBars(out, s.timeline.began, ended, tenures(s.processes...))
	return judge(), nil
}

// direct runs the play to its end, or to its first failure.
func (s *scene) direct(p play) (judge func() verdict, err error) {
	defer func() {
		if r := recover(); r != nil {
			failed, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = failed.error
		}
	}()
	return p(s), context.Cause(s.ctx)
}

// must ends the play after an error, or when its time is over.
func (s *scene) must(err error) {
	if over := context.Cause(s.ctx); over != nil {
		err = over
	}
	if err != nil {
		panic(failure{err})
	}
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

// say adds a line about what the play does.
func (s *scene) say(format string, args ...any) {
	s.pass(5 * time.Millisecond) // reports of what came before are on their way
	s.timeline.add("", fmt.Sprintf(text(format), args...))
}

func (s *scene) wait(event <-chan struct{}) {
	select {
	case <-event:
	case <-s.ctx.Done():
		s.must(nil)
	}
}

// pass lets time pass, such as that in which nothing is to happen.
func (s *scene) pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
		s.must(nil)
	}
}

// poll waits until a condition is met.
func (s *scene) poll(condition func() (bool, error)) {
	for {
		met, err := condition()
		s.must(err)
		if met {
			return
		}
		s.pass(10 * time.Millisecond)
	}
}

// read returns the answer of a server to a command, as text.
func (s *scene) read(n *node, args ...any) string {
	value, err := n.rdb.Do(s.ctx, args...).Result()
	if !errors.Is(err, redis.Nil) {
		s.must(err)
	}
	return formatReply(value)
}

// network makes a way to a server that the play can disturb.
func (s *scene) network(server *node) *fault.Proxy {
	proxy, err := fault.Listen(server.addr)
	s.must(err)
	s.closers = append(s.closers, proxy.Close)
	return proxy
}

// awaitWaiters waits until so many wait for the name, with holdfast.
func (s *scene) awaitWaiters(n *node, want int) {
	s.poll(func() (bool, error) {
		info, err := n.client.Inspect(s.ctx, lockName)
		return info.Waiters == want, err
	})
}

// awaitSubscribers waits until so many listen to the channel of the naive herd.
func (s *scene) awaitSubscribers(n *node, want int) {
	s.poll(func() (bool, error) {
		counts, err := n.rdb.PubSubNumSub(s.ctx, lockName+":free").Result()
		return counts[lockName+":free"] == int64(want), err
	})
}

// awaitExpiry waits until a key of the naive lock has expired.
func (s *scene) awaitExpiry(n *node, key string) {
	s.poll(func() (bool, error) {
		there, err := n.rdb.Exists(s.ctx, key).Result()
		return there == 0, err
	})
}

// awaitCommand waits until a process sends another command to a node.
func (s *scene) awaitCommand(n *node, process string) {
	before := n.count(process)
	s.poll(func() (bool, error) { return n.count(process) > before, nil })
}

// awaitQuiet waits until a node gets no more commands, and returns how many it has got. It counts
// its looks, and not the time: all processes may have stood still.
func (s *scene) awaitQuiet(n *node, clients ...string) (commands int) {
	const enough = 20
	same := 0
	s.poll(func() (bool, error) {
		same++
		if now := n.count(clients...); now != commands {
			commands, same = now, 0
		}
		return same == enough, nil
	})
	return commands
}

// awaitFirst waits until one of several processes that wait is inside, and returns it and the
// others.
func (s *scene) awaitFirst(waiting []*process) (inside *process, others []*process) {
	s.poll(func() (bool, error) {
		for i, p := range waiting {
			if p.answered() {
				inside = p
				others = append(append(others, waiting[:i]...), waiting[i+1:]...)
				return true, nil
			}
		}
		return false, nil
	})
	inside.answer()
	return inside, others
}

// A node is a server in the memory of this program.
type node struct {
	addr   string
	mini   *miniredis.Miniredis
	rdb    *redis.Client // for looks at its keys
	client *holdfast.Client

	mu       sync.Mutex
	behind   time.Duration // so far its clock is behind that of the system
	commands map[string]int
}

// node starts an empty server.
func (s *scene) node() *node { return s.nodeAt("127.0.0.1:0") }

func (s *scene) nodeAt(addr string) *node {
	n := &node{mini: miniredis.NewMiniRedis(), commands: map[string]int{}}
	n.mini.ClockTTL(true) // otherwise no key expires
	s.must(n.mini.StartAddr(addr))
	s.closers = append(s.closers, n.mini.Close)
	n.mini.Server().SetPreHook(n.observe)
	n.addr = n.mini.Addr()
	n.rdb = redis.NewClient(&redis.Options{Addr: n.addr, MaxRetries: -1})
	s.closers = append(s.closers, func() { _ = n.rdb.Close() })
	client, err := holdfast.New(redisstore.New(n.rdb), nil)
	s.must(err)
	n.client = client
	s.closers = append(s.closers, func() { _ = client.Close() })
	return n
}

// observe is called before each command, also before those of scripts, while the server is locked.
// Commands of scripts come from a client without a name.
func (n *node) observe(peer *server.Peer, command string, _ ...string) bool {
	if peer.ClientName == "" {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.behind != 0 {
		n.mini.SetTime(time.Now().Add(-n.behind))
	}
	if command != "CLIENT" { // go-redis says with it what it is
		n.commands[peer.ClientName]++
	}
	return false
}

// setBehind sets the clock of a server so far behind that of the system. It runs on with each
// command of a process.
func (n *node) setBehind(behind time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.behind = behind
	n.mini.SetTime(time.Now().Add(-behind))
}

// count returns how many commands these processes have sent.
func (n *node) count(processes ...string) (commands int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range processes {
		commands += n.commands[name]
	}
	return commands
}

// crash ends a server at once, with all that it has.
func (n *node) crash() { n.mini.Close() }
