// Package fault is a TCP proxy on the loopback that does to requests and answers what networks do.
// It loses an answer, holds requests back and lets them through later, goes silent, cuts
// connections, delays, and breaks up what it carries. It is for tests, and needs nothing but the
// standard library.
//
//	p := fault.Start(t, srv.Addr())
//	lost := p.DropAnswer("EVALSHA")   // of the next request that has EVALSHA in it
//	...                               // the client sends it, and its connection breaks
//	<-lost                            // the server had answered: the request took effect
//
// Each fault that happens closes a channel, so that tests wait for the fault and do not sleep. A
// rule looks at what one read brought. On the loopback that is what one write sent, as long as that
// is small.
package fault

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Proxy stands between clients and one server. All methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	all      sync.WaitGroup

	mu       sync.Mutex
	target   string // of new connections
	closed   bool
	links    map[*link]struct{}
	silences int           // under way
	silent   chan struct{} // closed when they are over; nil: there is none
	delay    time.Duration
	jitter   time.Duration // of requests that contain late
	late     string
	grains   bool // one byte at a time
	drops    []*rule
	holds    []*rule
	kept     []*Held  // all there ever were
	sent     []string // what clients sent, once Record was called
	record   bool
}

// A rule waits for its first match.
type rule struct {
	match   string
	answers bool          // looks at what the server sends, not at requests
	happen  chan struct{} // closed when it did its work
	held    *Held
}

// Start runs a proxy to an address until the test is over.
func Start(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p, err := Listen(target)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// Listen runs a proxy to an address until Close is called.
func Listen(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
	p := &Proxy{listener: listener, target: target, links: make(map[*link]struct{})}
	p.all.Go(p.accept)
	return p, nil
}

// Addr returns the address for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DropAnswer loses the answer to the next request that contains match, once the server gave it. It
// then cuts the connection, as a crash of the server's host does. The channel is closed when that
// has happened.
func (p *Proxy) DropAnswer(match string) (lost <-chan struct{}) {
	return p.drop(&rule{match: match, happen: make(chan struct{})})
}

func (p *Proxy) drop(r *rule) (happen <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops = append(p.drops, r)
	return r.happen
}

// Disarm forgets the rules that still wait for their match.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	p.drops = nil
	p.mu.Unlock()
}

// SwallowAnswer loses the next bytes of the server that contain match, such as a published message,
// and leaves the connection as it is.
func (p *Proxy) SwallowAnswer(match string) (lost <-chan struct{}) {
	return p.drop(&rule{match: match, answers: true, happen: make(chan struct{})})
}

// HoldRequest keeps back the next request that contains match, and all requests behind it on its
// connection.
func (p *Proxy) HoldRequest(match string) *Held {
	return p.hold(&p.holds, match)
}

// HoldAnswer keeps back the answer to the next request that contains match.
func (p *Proxy) HoldAnswer(match string) *Held { return p.hold(&p.drops, match) }

func (p *Proxy) hold(rules *[]*rule, match string) *Held {
	h := &Held{arrived: make(chan struct{}), passed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	*rules = append(*rules, &rule{match: match, happen: h.arrived, held: h})
	p.kept = append(p.kept, h)
	return h
}

// A Held is a request or an answer that is kept back.
type Held struct {
	arrived chan struct{}
	passed  chan struct{}
	once    sync.Once
}

// Arrived returns a channel that is closed when there is something to keep back.
func (h *Held) Arrived() <-chan struct{} { return h.arrived }

// Pass lets it through, a request even if its sender has closed the connection meanwhile.
func (h *Held) Pass() { h.once.Do(func() { close(h.passed) }) }

// Silence makes all connections half-open: they stay, the proxy accepts new ones, and nothing comes
// through. Each Silence needs a Speak.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silences++; p.silences == 1 && !p.closed {
		p.silent = make(chan struct{})
	}
}

// Speak ends a silence. After the last one, what was sent meanwhile comes through.
func (p *Proxy) Speak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silences--; p.silences == 0 {
		p.speak()
	}
}

// speak lets everything through. mu is held.
func (p *Proxy) speak() {
	if p.silent != nil {
		close(p.silent)
		p.silent = nil
	}
}

// Strand makes the present connections half-open for good: they stay, and nothing comes through.
// New ones work. A NAT that forgets its table does that, and so does a node that dies behind a
// balancer.
func (p *Proxy) Strand() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.stranded = true
	}
}

// Lead makes new connections lead to another server. The present ones stay where they are.
func (p *Proxy) Lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Delay makes every answer come later by d.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	p.delay = d
	p.mu.Unlock()
}

// Jitter delays one of three requests that contain match by up to d, at random, even if its sender
// has gone meanwhile. Requests on two connections then change their order. 0 ends the jitter.
func (p *Proxy) Jitter(match string, d time.Duration) {
	p.mu.Lock()
	p.late, p.jitter = match, d
	p.mu.Unlock()
}

// Trickle carries everything one byte at a time, or ends that.
func (p *Proxy) Trickle(on bool) {
	p.mu.Lock()
	p.grains = on
	p.mu.Unlock()
}

// Cut ends all present connections. New ones work.
func (p *Proxy) Cut() {
	p.mu.Lock()
	links := slices.Collect(maps.Keys(p.links))
	p.mu.Unlock()
	for _, l := range links {
		l.cut()
	}
}

// Record begins to write down what clients send.
func (p *Proxy) Record() {
	p.mu.Lock()
	p.record, p.sent = true, nil
	p.mu.Unlock()
}

// Sent returns what clients sent since Record, as far as it contains match.
func (p *Proxy) Sent(match string) (sent []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sent {
		if strings.Contains(s, match) {
			sent = append(sent, s)
		}
	}
	return sent
}

// wait returns how much later a request is to come.
func (p *Proxy) wait(text string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jitter <= 0 || !strings.Contains(text, p.late) || rand.IntN(3) > 0 {
		return 0
	}
	return rand.N(p.jitter)
}

// write sends on, in one go or byte by byte.
func (p *Proxy) write(to net.Conn, data []byte) error {
	p.mu.Lock()
	step := len(data)
	if p.grains {
		step = 1
	}
	p.mu.Unlock()
	for ; len(data) > 0; data = data[step:] {
		if _, err := to.Write(data[:step]); err != nil {
			return err
		}
	}
	return nil
}

// Close ends everything, and returns when no goroutine is left.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for _, h := range p.kept {
		h.Pass()
	}
	p.speak()
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.all.Wait()
}
