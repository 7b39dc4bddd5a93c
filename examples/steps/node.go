package main

import (
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
)

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
