package quorum

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Config is what a Protocol needs to know.
type Config struct {
	Prefix  string        // of keys and channels, without braces
	Process string        // names this client, and its channel: host, process and a random part
	MaxTTL  time.Duration // how long a node that forgot does not count
	Trust   bool          // count nodes that were born later than that
	Logger  *slog.Logger  // never nil
}

// Protocol implements protocol.Protocol on independent masters.
type Protocol struct {
	config  Config
	scripts *scripts
	nodes   []*node
	need    int       // a majority
	channel string    // of this process, for the messages of all nodes
	start   time.Time // the origin of now

	rounds  atomic.Int64          // the number of the latest round
	known   [buckets]atomic.Int64 // the largest token heard of
	floor   atomic.Int64          // the same, of all buckets
	longest atomic.Int64          // milliseconds: the longest TTL that any client may ask for

	mu         sync.Mutex
	running    int           // goroutines of this package
	idle       chan struct{} // closed when none is left after Close
	over       bool          // Close was called: waits takes no more
	closing    chan struct{} // closed when over is set; cleanups are then tried once more
	waits      map[protocol.ID]*wait
	repairs    map[protocol.ID]*repair // what is being renewed
	servers    map[string]*node        // at which node each server was seen first, by what it is known by
	clockCheck *clockCheck             // nil: none
}

// New makes a Protocol. It sends nothing.
func New(stores []wire.Store, config Config) *Protocol {
	p := &Protocol{
		config:  config,
		scripts: loadScripts(config.Prefix),
		need:    len(stores)/2 + 1,
		channel: config.Prefix + ":{%quorum}@" + config.Process,
		start:   time.Now(),
		idle:    make(chan struct{}),
		closing: make(chan struct{}),
		waits:   make(map[protocol.ID]*wait),
		repairs: make(map[protocol.ID]*repair),
		servers: make(map[string]*node),
	}
	p.rounds.Store(p.start.UnixMicro()) // larger than those of an earlier process, should an id come back
	for i, s := range stores {
		p.nodes = append(p.nodes, &node{p: p, index: i, store: s, Batcher: wire.NewBatcher(s)})
	}
	return p
}

// Features implements protocol.Protocol.
func (p *Protocol) Features() protocol.Features {
	return protocol.Features{NoPermits: noPermits, NoLatches: noLatches}
}

// Bind implements protocol.Protocol.
func (p *Protocol) Bind(spec protocol.Spec) protocol.Resource { return p.bind(spec) }

// Ready implements protocol.Protocol: nothing has to be known.
func (p *Protocol) Ready(context.Context, string) error { return nil }

// AskAll implements protocol.Protocol: a majority for one name says nothing of another.
func (p *Protocol) AskAll(context.Context, []protocol.ResourceAsk) ([]protocol.Answer, error) {
	return nil, protocol.ErrApart
}

// Close tries once more to take back what was left behind at nodes, until a moment, and ends all
// goroutines. Requests that a store does not give up in its time are left to it.
func (p *Protocol) Close(until time.Time) {
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return
	}
	waits := make(map[*wait]int, len(p.waits))
	for _, w := range p.waits {
		waits[w] = w.asks
	}
	p.mu.Unlock()
	for w, asks := range waits {
		w.giveUp(asks)
	}
	p.mu.Lock()
	p.over = true
	close(p.closing)
	idle := p.running == 0
	p.mu.Unlock()
	if idle {
		return
	}
	timer := protocol.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-p.idle:
	case <-timer.C:
	}
}

// startWorker starts a goroutine that Close waits for.
func (p *Protocol) startWorker(f func()) {
	p.mu.Lock()
	p.running++
	p.mu.Unlock()
	go func() {
		defer p.endWorker()
		f()
	}()
}

func (p *Protocol) endWorker() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running--; p.running == 0 && p.over {
		select {
		case <-p.idle:
		default:
			close(p.idle)
		}
	}
}

func (p *Protocol) closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// now returns the clock of our answers: local microseconds that no step of the wall clock touches.
func (p *Protocol) now() int64 { return p.micros(time.Now()) }

func (p *Protocol) micros(at time.Time) int64 {
	return p.start.UnixMicro() + at.Sub(p.start).Microseconds()
}

// local returns the moment of one of our answers' times.
func (p *Protocol) local(micros int64) time.Time {
	return p.start.Add(time.Duration(micros-p.start.UnixMicro()) * time.Microsecond)
}

// spare returns how many nodes may fail while the others are a majority.
func (p *Protocol) spare() int { return len(p.nodes) - p.need }

// buckets is how many clocks of tokens a node keeps. Names share them, so names that no client uses
// cost nothing.
const buckets = 1024

func bucketOf(name string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	return int(hash.Sum32() % buckets)
}

// learn notes the largest token of a bucket.
func learn(largest *atomic.Int64, token int64) {
	for {
		known := largest.Load()
		if token <= known || largest.CompareAndSwap(known, token) {
			return
		}
	}
}

// propose returns a token that is most likely larger than all that were accepted: larger than all
// that were heard of, and than the microseconds of the nodes' clocks, of which the median counts.
func (p *Protocol) propose(bucket int) int64 {
	now := time.Now()
	clocks := make([]int64, 0, 9)
	for _, n := range p.nodes {
		if at, ok := n.clock.At(now); ok && n.twin.Load() == nil {
			clocks = append(clocks, at)
		}
	}
	token := max(p.known[bucket].Load(), p.floor.Load()) + 1
	if len(clocks) == 0 {
		return token
	}
	slices.Sort(clocks)
	return max(token, clocks[len(clocks)/2])
}

var (
	errClosed  = errors.New("the client is closed")
	errNoTime  = errors.New("no node whose time at the grant is known has answered")
	errTooLate = errors.New("the request reached the server too late and did nothing")
)

func nodeName(index int) string { return "node " + strconv.Itoa(index+1) }
