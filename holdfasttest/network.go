package holdfasttest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"time"
)

// A network carries bytes between clients and a server inside the test. Writing into silence
// succeeds, as into a socket. What was written before a client gave its connection up still arrives
// afterwards. A network that is made in a bubble of testing/synctest goes by the bubble's clock.
type network struct {
	serve func(net.Conn)
	all   sync.WaitGroup // the goroutines of the links

	mu      sync.Mutex // guards all below, and the links' fields
	changed *sync.Cond // of mu
	closed  bool
	silent  bool
	delay   time.Duration // of what the server sends
	links   map[*link]bool
}

// A link is one connection: a pipe to the client, a pipe to the server, and two flows between.
type link struct {
	client, server net.Conn
	flows          [2]flow
	listens        bool // the client has subscribed
}

// A flow is what goes one way, oldest first.
type flow struct {
	packets []packet
	over    bool // the connection is broken
}

type packet struct {
	data []byte // nil: the writer has closed
	due  time.Time
}

// newNetwork makes a network. It gives serve the far end of each connection.
func newNetwork(serve func(net.Conn)) *network {
	n := &network{serve: serve, links: map[*link]bool{}}
	n.changed = sync.NewCond(&n.mu)
	return n
}

// dial connects; in silence, when that is over. On failure there is no connection.
func (n *network) dial(ctx context.Context) (net.Conn, error) {
	defer context.AfterFunc(ctx, n.wake)()
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.silent && !n.closed && ctx.Err() == nil {
		n.changed.Wait()
	}
	err := ctx.Err()
	if n.closed {
		err = net.ErrClosed
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	l := &link{}
	var client, server net.Conn
	client, l.client = net.Pipe()
	server, l.server = net.Pipe()
	n.links[l] = true
	n.all.Go(func() { n.read(l, &l.flows[0], l.client) })
	n.all.Go(func() { n.read(l, &l.flows[1], l.server) })
	n.all.Go(func() {
		n.write(&l.flows[0], l.server)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.links, l)
	})
	n.all.Go(func() { n.write(&l.flows[1], l.client) })
	n.serve(server)
	return client, nil
}

// read takes what an end writes, until it closes.
func (n *network) read(l *link, f *flow, from net.Conn) {
	buf := make([]byte, 4096)
	for {
		size, err := from.Read(buf)
		p := packet{due: time.Now()}
		if err == nil {
			p.data = bytes.Clone(buf[:size])
		}
		n.change(func() {
			if from == l.server {
				p.due = p.due.Add(n.delay)
			}
			l.listens = l.listens || from == l.client && bytes.Contains(bytes.ToLower(p.data), []byte("subscribe"))
			f.packets = append(f.packets, p)
		})
		if err != nil {
			return
		}
	}
}

// write gives an end what is due, and closes it behind the last packet.
func (n *network) write(f *flow, to net.Conn) {
	defer to.Close()
	for {
		p := n.next(f)
		if p.data == nil {
			return
		}
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}

// next waits for the next packet. A broken connection has none: its end is closed.
func (n *network) next(f *flow) (p packet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for !f.over {
		if len(f.packets) == 0 || n.silent {
			n.changed.Wait()
		} else if wait := time.Until(f.packets[0].due); wait > 0 {
			timer := time.AfterFunc(wait, n.wake)
			n.changed.Wait()
			timer.Stop()
		} else {
			p, f.packets = f.packets[0], f.packets[1:]
			return p
		}
	}
	return packet{}
}

// wake has all who wait look again.
func (n *network) wake() { n.change(func() {}) }

// setSilent makes the network silent, or ends that: nothing arrives, and nothing fails.
func (n *network) setSilent(silent bool) { n.change(func() { n.silent = silent }) }

// setDelay delays what the server sends from now on.
func (n *network) setDelay(d time.Duration) { n.change(func() { n.delay = d }) }

// disconnect breaks the connections that are chosen, or all. The data under way is lost.
func (n *network) disconnect(chosen func(*link) bool) {
	n.change(func() {
		for l := range n.links {
			if chosen == nil || chosen(l) {
				l.cut()
			}
		}
	})
}

// close breaks all connections, and makes no other. It returns when no goroutine is left.
func (n *network) close() {
	n.change(func() { n.closed, n.silent = true, false })
	n.disconnect(nil)
	n.all.Wait()
}

func (n *network) change(how func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	how()
	n.changed.Broadcast()
}

// subscribed reports whether the client listens for messages on the connection.
func (l *link) subscribed() bool { return l.listens }

func (l *link) cut() {
	l.flows[0].over, l.flows[1].over = true, true
	_ = l.client.Close()
	_ = l.server.Close()
}
