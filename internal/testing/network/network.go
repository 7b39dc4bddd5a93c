// Package network is a network inside a process, between clients and a server, that obeys: it holds
// bytes back, delays them, repeats them and loses them when told to. As in a real one, writing into
// silence succeeds, and what was written before a client gave its connection up still arrives
// afterwards.
//
// It goes by timers and runs no goroutine of its own. Made inside a bubble of testing/synctest it
// goes by the bubble's clock; what is not delayed arrives at once.
package network

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"
)

// A Way is a direction.
type Way int

// The directions.
const (
	There Way = iota // from the client to the server
	Back
)

// A Config is what a network is like. The zero Config is a network without latency.
type Config struct {
	Latency time.Duration // one way
	Breaks  time.Duration // after which a connection that has lost something breaks; 0: never
}

// A Network carries connections to one server. All methods are safe for concurrent use.
type Network struct {
	serve  func(net.Conn) error
	config Config

	mu      sync.Mutex
	closed  bool
	refused bool          // as if nobody were there
	quiet   [2]int        // by way: how many silences
	slow    time.Duration // more latency
	rules   []*Rule
	links   map[*link]bool
	serving int        // far ends that the server is being given
	changed *sync.Cond // of mu: something above, or an end, is another
}

// New makes a network. Serve gives the server the far end of a connection; an error refuses it.
func New(serve func(net.Conn) error, config Config) *Network {
	n := &Network{serve: serve, config: config, links: map[*link]bool{}}
	n.changed = sync.NewCond(&n.mu)
	return n
}

// Dial connects; in silence when that is over, or ctx. The connection has a method Broken() error,
// which tells what a look at an idle connection shows.
func (n *Network) Dial(ctx context.Context) (net.Conn, error) {
	failed := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	if n.config.Latency > 0 {
		trip := time.NewTimer(2 * n.config.Latency)
		defer trip.Stop()
		select {
		case <-trip.C:
		case <-ctx.Done():
			return nil, failed(ctx.Err())
		}
	}
	l, err := n.open(ctx)
	if err != nil {
		return nil, failed(err)
	}
	err = n.serve(l.ends[There])
	n.change(func() {
		n.serving--
		if err != nil {
			l.cut()
		}
	})
	if err != nil {
		return nil, failed(err)
	}
	return l.ends[Back], nil
}

// open makes a link, once there is no silence.
func (n *Network) open(ctx context.Context) (*link, error) {
	defer context.AfterFunc(ctx, n.wake)()
	n.mu.Lock()
	defer n.mu.Unlock()
	for !n.closed && !n.refused && n.quiet[There]+n.quiet[Back] > 0 && ctx.Err() == nil {
		n.changed.Wait()
	}
	switch {
	case n.closed:
		return nil, net.ErrClosed
	case n.refused:
		return nil, errors.New("connection refused")
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	l := newLink(n)
	n.links[l] = true
	n.serving++
	return l, nil
}

// wake has all who wait look again.
func (n *Network) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed.Broadcast()
}

// Pause makes the network silent, in both directions: nothing arrives and nothing fails. New
// connections hang.
func (n *Network) Pause() { n.Silence(There, Back) }

// Resume ends all silences, and a Kill. The data that was written meanwhile arrives, also on
// connections that were given up.
func (n *Network) Resume() { n.change(func() { n.quiet, n.refused = [2]int{}, false }) }

// Silence is Pause for some ways. Each needs a Speak, or Resume.
func (n *Network) Silence(ways ...Way) { n.hush(1, ways) }

// Speak ends a Silence.
func (n *Network) Speak(ways ...Way) { n.hush(-1, ways) }

func (n *Network) hush(by int, ways []Way) {
	n.change(func() {
		for _, way := range ways {
			n.quiet[way] += by
		}
	})
}

// Slow adds to the latency of both ways; a negative time takes it back.
func (n *Network) Slow(d time.Duration) { n.change(func() { n.slow += d }) }

// DropAnswer loses the answer to the next request in which the word occurs, in any case of letters:
// the request is carried out, and its connection is silent from then on.
func (n *Network) DropAnswer(word string) {
	n.Strike(Rule{Match: Contains(word), Times: 1, Do: Mute})
}

// Strike sets a rule, until end is called.
func (n *Network) Strike(r Rule) (end func()) {
	n.change(func() { n.rules = append(n.rules, &r) })
	return func() { n.change(func() { r.Times = 0 }) }
}

// Disconnect breaks all connections. The data that is under way on them is lost.
func (n *Network) Disconnect() {
	n.change(func() {
		for l := range n.links {
			l.cut()
		}
	})
}

// Kill is the end of the client's process: its connections break, and it makes no others. The
// server is not given any more once Kill has returned.
func (n *Network) Kill() {
	n.change(func() { n.refused = true })
	n.awaitServed()
	n.Disconnect()
}

// awaitServed waits until the server has the far end of each connection that was made.
func (n *Network) awaitServed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.serving > 0 {
		n.changed.Wait()
	}
}

// Vanish is the end of the client's host: nothing arrives any more, and nothing fails.
func (n *Network) Vanish() {
	n.change(func() {
		n.refused = true
		for l := range n.links {
			l.lose(There)
			l.lose(Back)
		}
	})
}

// Close ends the network: all connections break, and none can be made. As after Kill, the server
// is given no more.
func (n *Network) Close() {
	n.change(func() { n.closed = true })
	n.awaitServed()
	n.Disconnect()
}

func (n *Network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.changed.Broadcast()
	for l := range n.links {
		l.deliver(There)
		l.deliver(Back)
	}
}

// A Rule strikes what passes one way and matches: what one write sent.
type Rule struct {
	Way    Way
	Match  func(data []byte) bool
	Times  int // how often it strikes; negative: always
	Do     Action
	Late   time.Duration
	Prefix []byte // of what is repeated
}

// An Action is what a rule does.
type Action int

// The actions.
const (
	Lose   Action = iota // it is lost
	Delay                // it arrives Late, and all behind it on its connection
	Repeat               // it arrives again, Late and on a connection of its own
	Deafen               // it and all that the client sends behind it on its connection are lost
	Mute                 // all that the server sends on its connection from then on is lost
)

// Contains matches what has a word in it, in any case of letters.
func Contains(word string) func(data []byte) bool {
	lower := []byte(strings.ToLower(word))
	return func(data []byte) bool { return bytes.Contains(bytes.ToLower(data), lower) }
}
