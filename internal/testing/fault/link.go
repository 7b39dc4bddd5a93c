package fault

import (
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// A link is one connection of a client and the one to the server that belongs to it.
type link struct {
	p              *Proxy
	client, server net.Conn
	once           sync.Once
	over           chan struct{} // closed when it is cut
	stranded       bool          // nothing comes through any more; guarded by p.mu

	mu   sync.Mutex
	rule *rule // for the answer to the request that the server works on
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{p: p, client: client, server: server, over: make(chan struct{})}
	p.mu.Lock()
	closed := p.closed
	p.links[l] = struct{}{}
	p.mu.Unlock()
	if closed {
		l.cut()
	}
	p.all.Go(l.answers)
	l.requests()
	l.cut()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (l *link) cut() {
	l.once.Do(func() {
		close(l.over)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// requests carries what the client sends.
func (l *link) requests() {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buf)
		if err != nil {
			return
		}
		text := string(buf[:n])
		l.p.mu.Lock()
		if l.p.record {
			l.p.sent = append(l.p.sent, text)
		}
		l.p.mu.Unlock()
		if r := l.p.take(&l.p.holds, text, false); r != nil {
			close(r.happen)
			<-r.held.passed // also when the client is gone
		}
		if d := l.p.wait(text); d > 0 {
			time.Sleep(d) // also when the client is gone
		}
		if !l.speech() {
			return
		}
		if r := l.p.take(&l.p.drops, text, false); r != nil {
			l.mu.Lock()
			l.rule = r
			l.mu.Unlock()
		}
		if l.p.write(l.server, buf[:n]) != nil {
			return
		}
	}
}

// answers carries what the server sends.
func (l *link) answers() {
	defer l.cut()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		r := l.rule
		l.rule = nil
		l.mu.Unlock()
		if r != nil {
			close(r.happen)
			if r.held == nil {
				return // and cut: the answer is lost
			}
			<-r.held.passed
		}
		text := string(buf[:n])
		if r := l.p.take(&l.p.drops, text, true); r != nil {
			close(r.happen)
			continue
		}
		l.p.mu.Lock()
		delay := l.p.delay
		l.p.mu.Unlock()
		if delay > 0 {
			time.Sleep(delay)
		}
		if !l.speech() {
			return
		}
		if l.p.write(l.client, buf[:n]) != nil {
			return
		}
	}
}

// speech waits for the end of a silence; false when the link is cut. The silence of a stranded link
// has no end.
func (l *link) speech() bool {
	l.p.mu.Lock()
	silent := l.p.silent
	if l.stranded {
		silent = make(chan struct{})
	}
	l.p.mu.Unlock()
	if silent == nil {
		return true
	}
	select {
	case <-silent:
		return true
	case <-l.over:
		return false
	}
}

// take returns the first rule that matches, and uses it up.
func (p *Proxy) take(rules *[]*rule, text string, answers bool) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(*rules, func(r *rule) bool { return r.answers == answers && strings.Contains(text, r.match) })
	if i < 0 {
		return nil
	}
	r := (*rules)[i]
	*rules = slices.Delete(*rules, i, i+1)
	return r
}
