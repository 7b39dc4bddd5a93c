package main

import (
	"bytes"
	"net"
	"sync"
)

// A network is a proxy between processes and a server. All methods are safe for concurrent use, and
// close ends what is held back. Rules look at what one read brings. Here that is one request, as
// the clients send one request at a time on each connection.
type network struct {
	addr     string // for clients
	listener net.Listener
	all      sync.WaitGroup
	closed   chan struct{}

	mu     sync.Mutex
	target string
	conns  map[net.Conn]bool
	rules  []*rule
	silent chan struct{} // closed when the silence ends; nil: there is none
}

// A rule waits for a request with some text in it, and does its work once.
type rule struct {
	match   []byte
	answer  bool          // its work is on the answer to that request
	lose    bool          // the answer is lost, with the connection
	arrived chan struct{} // closed when the request, or the answer, has come here
	sent    chan struct{} // closed when it was sent on
	free    chan struct{} // closed when the play lets it pass
	once    sync.Once
}

// pass lets through what is held back.
func (r *rule) pass() { r.once.Do(func() { close(r.free) }) }

// network makes a way to a server that the play can disturb.
func (s *scene) network(server *node) *network {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	n := &network{
		addr: listener.Addr().String(), target: server.addr, listener: listener,
		closed: make(chan struct{}), conns: map[net.Conn]bool{},
	}
	n.all.Go(n.accept)
	s.closers = append(s.closers, n.close)
	return n
}

// holdRequest keeps back the next request that contains match.
func (n *network) holdRequest(match string) *rule { return n.add(&rule{match: []byte(match)}) }

// holdAnswer lets the next request that contains match through, and keeps its answer back.
func (n *network) holdAnswer(match string) *rule {
	return n.add(&rule{match: []byte(match), answer: true})
}

// awaitAnswer returns a channel that is closed when the next request that contains match was
// answered, and the answer was sent on.
func (n *network) awaitAnswer(match string) <-chan struct{} {
	r := n.holdAnswer(match)
	r.pass()
	return r.sent
}

// loseAnswer loses the answer to the next request that contains match, and cuts the connection.
func (n *network) loseAnswer(match string) *rule {
	return n.add(&rule{match: []byte(match), answer: true, lose: true})
}

func (n *network) add(r *rule) *rule {
	r.match = bytes.ToLower(r.match)
	r.arrived, r.sent, r.free = make(chan struct{}), make(chan struct{}), make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rules = append(n.rules, r)
	return r
}

// take removes and returns the rule for a request.
func (n *network) take(request []byte) *rule {
	request = bytes.ToLower(request)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, r := range n.rules {
		if bytes.Contains(request, r.match) {
			n.rules = append(n.rules[:i:i], n.rules[i+1:]...)
			return r
		}
	}
	return nil
}

// silence keeps everything back, in both directions, until speak.
func (n *network) silence() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent = make(chan struct{})
}

func (n *network) speak() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.silent != nil {
		close(n.silent)
		n.silent = nil
	}
}

// lead cuts all connections. New ones go to another server.
func (n *network) lead(target string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.target = target
	for c := range n.conns {
		c.Close()
	}
}

func (n *network) accept() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.mu.Lock()
		target := n.target
		n.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil {
			client.Close()
			continue
		}
		n.mu.Lock()
		led := n.target == target
		if led {
			n.conns[client], n.conns[server] = true, true
		}
		n.mu.Unlock()
		if !led { // lead came meanwhile, and did not see them
			client.Close()
			server.Close()
			continue
		}
		answers := make(chan *rule, 16) // the rules for the answers of this connection
		n.all.Go(func() {
			n.carry(server, client, func(request []byte) *rule {
				r := n.take(request)
				if r != nil && r.answer {
					answers <- r
					return nil
				}
				return r
			})
		})
		n.all.Go(func() {
			n.carry(client, server, func([]byte) *rule {
				select {
				case r := <-answers:
					return r
				default:
					return nil
				}
			})
		})
	}
}

// carry copies one direction until it ends, and closes both ends then.
func (n *network) carry(to, from net.Conn, find func([]byte) *rule) {
	defer func() {
		to.Close()
		from.Close()
		n.mu.Lock()
		delete(n.conns, to)
		delete(n.conns, from)
		n.mu.Unlock()
	}()
	data := make([]byte, 64<<10)
	for {
		length, err := from.Read(data)
		if err != nil {
			return
		}
		r := find(data[:length])
		if r != nil {
			close(r.arrived)
			if r.lose {
				return
			}
			n.wait(r.free)
		}
		n.mu.Lock()
		silent := n.silent
		n.mu.Unlock()
		if silent != nil {
			n.wait(silent)
		}
		if _, err := to.Write(data[:length]); err != nil {
			return
		}
		if r != nil {
			close(r.sent)
		}
	}
}

// wait returns at an event, or when the network is closed.
func (n *network) wait(event <-chan struct{}) {
	select {
	case <-event:
	case <-n.closed:
	}
}

func (n *network) close() {
	close(n.closed)
	n.listener.Close()
	n.lead("")
	n.all.Wait()
}
