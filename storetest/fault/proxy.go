// Package fault is a TCP proxy on the loopback that does to requests and answers what networks do: it loses an
// answer, holds things back and lets them through later, goes silent, cuts connections, delays, and breaks up what it
// carries. It is for tests, and needs nothing but the standard library.
//
//	p := fault.Start(t, srv.Addr())
//	lost := p.DropAnswer("EVALSHA")   // of the next request that has EVALSHA in it
//	...                               // the client sends it, and its connection breaks
//	<-lost                            // the server had answered: the request took effect
//
// Whatever happens is told by a channel, so that tests wait for it and do not sleep. A rule looks at what one read
// brought, which on the loopback is what one write sent, as long as that is small.
package fault

import (
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Proxy stands between clients and one server. All methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	all      sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[*link]struct{}
	silent chan struct{} // closed when speech is allowed again; nil: it is
	delay  time.Duration
	jitter time.Duration // of requests that contain late
	late   string
	grains bool // one byte at a time
	drops  []*rule
	holds  []*rule
	kept   []*Held  // all there ever were
	sent   []string // what clients sent, once Record was called
	record bool
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, links: make(map[*link]struct{})}
	p.all.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DropAnswer loses the answer to the next request that contains match, once the server gave it, and then cuts the
// connection, as a server's host does that crashes. The channel is closed when that has happened.
func (p *Proxy) DropAnswer(match string) (lost <-chan struct{}) {
	r := &rule{match: match, happen: make(chan struct{})}
	p.mu.Lock()
	p.drops = append(p.drops, r)
	p.mu.Unlock()
	return r.happen
}

// Disarm forgets what was to be lost and has not come yet.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	p.drops = nil
	p.mu.Unlock()
}

// SwallowAnswer loses the next bytes of the server that contain match, such as a published message, and leaves the
// connection as it is.
func (p *Proxy) SwallowAnswer(match string) (lost <-chan struct{}) {
	r := &rule{match: match, answers: true, happen: make(chan struct{})}
	p.mu.Lock()
	p.drops = append(p.drops, r)
	p.mu.Unlock()
	return r.happen
}

// HoldRequest keeps back the next request that contains match, and all behind it on its connection.
func (p *Proxy) HoldRequest(match string) *Held { return p.hold(match, false) }

// HoldAnswer keeps back the next bytes of the server that contain match, and all behind them on their connection.
func (p *Proxy) HoldAnswer(match string) *Held { return p.hold(match, true) }

func (p *Proxy) hold(match string, answers bool) *Held {
	h := &Held{arrived: make(chan struct{}), passed: make(chan struct{})}
	p.mu.Lock()
	p.holds = append(p.holds, &rule{match: match, answers: answers, happen: h.arrived, held: h})
	p.kept = append(p.kept, h)
	p.mu.Unlock()
	return h
}

// A Held is something kept back.
type Held struct {
	arrived chan struct{}
	passed  chan struct{}
	once    sync.Once
}

// Arrived is closed when there is something to keep back.
func (h *Held) Arrived() <-chan struct{} { return h.arrived }

// Pass lets it through; a request also when its sender has closed the connection meanwhile.
func (h *Held) Pass() { h.once.Do(func() { close(h.passed) }) }

// Silence makes all connections half-open: they stay, new ones are accepted, and nothing comes through, until Speak.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == nil {
		p.silent = make(chan struct{})
	}
}

// Speak ends a silence. What was sent meanwhile comes through now.
func (p *Proxy) Speak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent != nil {
		close(p.silent)
		p.silent = nil
	}
}

// Delay makes every answer come later by d.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	p.delay = d
	p.mu.Unlock()
}

// Jitter makes one of three requests that contain match come later by up to d, at random, also when its sender has gone
// meanwhile: requests on two connections change their order. 0 ends it.
func (p *Proxy) Jitter(match string, d time.Duration) {
	p.mu.Lock()
	p.late, p.jitter = match, d
	p.mu.Unlock()
}

// Trickle carries everything one byte at a time, or no longer.
func (p *Proxy) Trickle(on bool) {
	p.mu.Lock()
	p.grains = on
	p.mu.Unlock()
}

// Cut ends all connections there are; new ones work.
func (p *Proxy) Cut() {
	for _, l := range p.open() {
		l.cut()
	}
}

// Stop ends the proxy before the test is over: clients find nobody at its address.
func (p *Proxy) Stop() { p.close() }

// Record begins to write down what clients send.
func (p *Proxy) Record() {
	p.mu.Lock()
	p.record, p.sent = true, nil
	p.mu.Unlock()
}

// Sent is what clients sent since Record, of what contains match.
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

// wait is how much later a request is to come.
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

func (p *Proxy) open() (links []*link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// close ends everything, and returns when no goroutine is left.
func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	for _, h := range p.kept {
		h.Pass()
	}
	p.mu.Unlock()
	p.Speak()
	_ = p.listener.Close()
	for _, l := range p.open() {
		l.cut()
	}
	p.all.Wait()
}
