package network

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// A link is one connection: two ends, and what is under way between them. Its fields are guarded by
// Network.mu, which the callers of its methods hold.
type link struct {
	n     *Network
	ends  [2]*end // [There] is the server's, which reads what goes there
	flows [2]flow
}

type flow struct {
	queue []packet
	timer *time.Timer
	lost  bool // nothing arrives any more
}

type packet struct {
	data []byte // nil: the writer has closed
	due  time.Time
}

func newLink(n *Network) *link {
	l := &link{n: n}
	for way := range l.ends {
		l.ends[way] = &end{link: l, reads: Way(way)}
	}
	return l
}

// send puts what an end wrote on its way; nil: it has closed.
func (l *link) send(way Way, data []byte) {
	n, f := l.n, &l.flows[way]
	due := time.Now().Add(n.config.Latency + n.slow)
	if data != nil {
		late, lost := l.struck(way, data)
		if lost {
			return
		}
		due = due.Add(late)
	}
	if f.lost {
		return
	}
	if k := len(f.queue); k > 0 && f.queue[k-1].due.After(due) {
		due = f.queue[k-1].due
	}
	f.queue = append(f.queue, packet{data, due})
	if len(f.queue) == 1 {
		l.deliver(way)
	}
}

// struck applies the rules: how late the data is, and whether it is lost.
func (l *link) struck(way Way, data []byte) (late time.Duration, lost bool) {
	n := l.n
	n.rules = slices.DeleteFunc(n.rules, func(r *Rule) bool { return r.Times == 0 })
	for _, r := range n.rules {
		if r.Times == 0 || r.Way != way || !r.Match(data) {
			continue
		}
		if r.Times > 0 {
			r.Times--
		}
		switch r.Do {
		case Repeat:
			n.again(slices.Concat(r.Prefix, data), r.Late)
			continue
		case Delay:
			return r.Late, false
		case Deafen:
			l.flows[There].lost = true
		case Mute:
			l.flows[Back].lost = true
		}
		if n.config.Breaks > 0 && r.Do != Lose {
			time.AfterFunc(n.config.Breaks, func() { n.change(l.cut) })
		}
		return 0, r.Do != Mute
	}
	return 0, false
}

// again lets a request arrive a second time, on a connection of its own whose client is gone.
func (n *Network) again(data []byte, late time.Duration) {
	time.AfterFunc(n.config.Latency+late, func() {
		l := newLink(n)
		l.ends[There].buf, l.ends[There].over = data, true
		l.flows[Back].lost = true
		_ = n.serve(l.ends[There])
	})
}

// deliver gives what is due to the end that reads it, and sets the timer for the rest.
func (l *link) deliver(way Way) {
	f, e := &l.flows[way], l.ends[way]
	if len(f.queue) == 0 || l.n.quiet[way] > 0 {
		return
	}
	now := time.Now()
	for len(f.queue) > 0 && !f.queue[0].due.After(now) {
		e.receive(f.queue[0].data)
		f.queue = f.queue[1:]
	}
	l.n.changed.Broadcast()
	if len(f.queue) > 0 {
		after := f.queue[0].due.Sub(now)
		if f.timer == nil {
			f.timer = time.AfterFunc(after, func() {
				l.n.mu.Lock()
				defer l.n.mu.Unlock()
				l.deliver(way)
			})
		} else {
			f.timer.Reset(after)
		}
	}
	if l.ends[There].closed && l.ends[Back].closed && len(l.flows[There].queue)+len(l.flows[Back].queue) == 0 {
		delete(l.n.links, l)
	}
}

// lose loses what is under way, and all that will be sent.
func (l *link) lose(way Way) { l.flows[way].queue, l.flows[way].lost = nil, true }

// cut breaks the connection; what is under way is lost.
func (l *link) cut() {
	for way, e := range l.ends {
		l.lose(Way(way))
		e.broken, e.buf = true, nil
	}
	l.n.changed.Broadcast()
	delete(l.n.links, l)
}

// An end is a net.Conn. Its fields are guarded by Network.mu.
type end struct {
	link     *link
	reads    Way
	buf      []byte
	over     bool // nothing more comes: the other side has closed
	broken   bool
	closed   bool // from this side
	deadline time.Time
}

var errReset = errors.New("connection reset by peer")

// receive takes what arrives; nil: the other side has closed. mu is held.
func (e *end) receive(data []byte) {
	switch {
	case data == nil:
		e.over = true
	case !e.closed:
		e.buf = append(e.buf, data...)
	}
}

func (e *end) Read(p []byte) (int, error) {
	n := e.link.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		switch {
		case e.closed:
			return 0, net.ErrClosed
		case len(e.buf) > 0:
			read := copy(p, e.buf)
			e.buf = e.buf[read:]
			return read, nil
		case e.broken:
			return 0, errReset
		case e.over:
			return 0, io.EOF
		case e.deadline.IsZero():
			n.changed.Wait()
		case !time.Now().Before(e.deadline):
			return 0, os.ErrDeadlineExceeded
		default:
			timer := time.AfterFunc(time.Until(e.deadline), n.wake)
			n.changed.Wait()
			timer.Stop()
		}
	}
}

func (e *end) Write(p []byte) (int, error) {
	e.link.n.mu.Lock()
	defer e.link.n.mu.Unlock()
	if e.closed {
		return 0, net.ErrClosed
	}
	if e.broken || e.over {
		return 0, errReset
	}
	e.link.send(1-e.reads, bytes.Clone(p))
	return len(p), nil
}

func (e *end) Close() error {
	e.link.n.mu.Lock()
	defer e.link.n.mu.Unlock()
	if !e.closed {
		e.closed, e.buf = true, nil
		e.link.send(1-e.reads, nil)
		e.link.n.changed.Broadcast()
	}
	return nil
}

func (e *end) SetDeadline(t time.Time) error {
	e.link.n.mu.Lock()
	defer e.link.n.mu.Unlock()
	e.deadline = t
	e.link.n.changed.Broadcast()
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error { return e.SetDeadline(t) }
func (e *end) SetWriteDeadline(time.Time) error  { return nil } // writing never waits
func (e *end) LocalAddr() net.Addr               { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (e *end) RemoteAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379} }

// Broken returns what a look at an idle connection shows, as at a socket.
func (e *end) Broken() error {
	e.link.n.mu.Lock()
	defer e.link.n.mu.Unlock()
	switch {
	case e.closed:
		return net.ErrClosed
	case e.broken || e.over:
		return errReset
	case len(e.buf) > 0:
		return errors.New("an idle connection has an answer to nothing")
	}
	return nil
}
