package simulate

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A wire is the network between one client and the server. As in a real one, writing into silence succeeds, and what
// was written before a connection was given up still arrives. It goes by timers and runs no goroutine of its own.
type wire struct {
	serve   func(net.Conn) error // the server takes a connection; an error: it is down
	latency time.Duration        // one way

	mu    sync.Mutex
	quiet [2]int        // by way: how many silences
	slow  time.Duration // more latency
	deaf  int           // how many want messages to be lost
	dead  bool          // nobody is there
	heals bool          // a connection that has lost something breaks in the end
	rules []*rule
	links map[*link]bool
	awake chan struct{} // closed and renewed when silence may be over
	heard time.Time     // when the last answer came that tells the server's time
}

// A way is a direction.
type way int

const (
	there way = iota // from the client to the server
	back
)

// A rule strikes requests, or answers to them, a few times.
type rule struct {
	way   way
	times int
	late  time.Duration
	twice bool // the request arrives again, so much later; else it is lost
}

// A link is one connection: two ends, and what is under way between them.
type link struct {
	w     *wire
	ends  [2]*end // [there] is the server's, which reads what goes there
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

func newWire(latency time.Duration, serve func(net.Conn) error) *wire {
	return &wire{serve: serve, latency: latency, links: map[*link]bool{}, awake: make(chan struct{})}
}

// dial connects; in silence when that is over, or ctx.
func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	failed := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	if reconnects() {
		return nil, failed(errors.New("connection refused"))
	}
	trip := time.NewTimer(2 * w.latency)
	defer trip.Stop()
	select {
	case <-trip.C:
	case <-ctx.Done():
		return nil, failed(ctx.Err())
	}
	for {
		w.mu.Lock()
		quiet, dead, awake := w.quiet[there]+w.quiet[back] > 0, w.dead, w.awake
		if !quiet && !dead {
			break
		}
		w.mu.Unlock()
		if dead {
			return nil, failed(errors.New("connection refused"))
		}
		select {
		case <-awake:
		case <-ctx.Done():
			return nil, failed(ctx.Err())
		}
	}
	defer w.mu.Unlock()
	l := &link{w: w}
	for at := range l.ends {
		l.ends[at] = &end{link: l, reads: way(at), wake: make(chan struct{}, 1)}
	}
	if err := w.serve(l.ends[there]); err != nil {
		return nil, failed(err)
	}
	w.links[l] = true
	return l.ends[back], nil
}

// reconnects tells whether a PubSub of go-redis dials anew by itself. It does so under a mutex on which others may wait,
// and while somebody waits for a mutex, a bubble's clock stands still, for ever if that is for a timer. The adapter throws
// such a PubSub away and makes another, whether that dial succeeds or not.
func reconnects() bool {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "(*PubSub).reconnect") {
			return true
		}
		if !more {
			return false
		}
	}
}

// send puts what an end wrote on its way. mu is held.
func (l *link) send(way way, data []byte) {
	w, f := l.w, &l.flows[way]
	if data != nil && !l.passes(way, data) || f.lost {
		return
	}
	due := time.Now().Add(w.latency + w.slow)
	if n := len(f.queue); n > 0 && f.queue[n-1].due.After(due) {
		due = f.queue[n-1].due
	}
	f.queue = append(f.queue, packet{data, due})
	if len(f.queue) == 1 {
		l.arm(way)
	}
}

// passes applies the rules; false: it is lost. mu is held.
func (l *link) passes(way way, data []byte) bool {
	w := l.w
	if way == back {
		if w.deaf > 0 && bytes.Contains(data, []byte("$7\r\nmessage\r\n")) && !bytes.Contains(data, []byte("subscribe")) {
			return false
		}
		return true
	}
	if !bytes.Contains(data, []byte("EVAL")) {
		return true
	}
	for _, r := range w.rules {
		if r.times == 0 {
			continue
		}
		r.times--
		if r.twice {
			w.again(data, r.late)
			continue
		}
		l.flows[r.way].lost = true
		if w.heals {
			time.AfterFunc(15*time.Second, func() { w.change(l.cut) })
		}
		return r.way != there
	}
	return true
}

// again lets a request arrive a second time, on a connection of its own. mu is held.
func (w *wire) again(data []byte, late time.Duration) {
	name := []byte("*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$5\r\nagain\r\n")
	data = append(name, data...)
	time.AfterFunc(w.latency+late, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		l := &link{w: w}
		l.ends[there] = &end{link: l, reads: there, wake: make(chan struct{}, 1), buf: data, over: true}
		l.ends[back] = &end{link: l, reads: back, wake: make(chan struct{}, 1), closed: true}
		l.flows[back].lost = true
		_ = w.serve(l.ends[there])
	})
}

// arm sets the timer of a flow for its first packet. mu is held.
func (l *link) arm(way way) {
	f := &l.flows[way]
	if len(f.queue) == 0 || l.w.quiet[way] > 0 {
		return
	}
	after := time.Until(f.queue[0].due)
	if f.timer == nil {
		f.timer = time.AfterFunc(after, func() { l.deliver(way) })
	} else {
		f.timer.Reset(after)
	}
}

// timed tells whether an answer is one of a script that tells the server's time, in 16 digits and more: a release tells none.
func timed(data []byte) bool {
	head, _, _ := strings.Cut(string(data[:min(len(data), 8)]), "\r")
	n, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
	return data[0] == '$' && err == nil && n > 16
}

// deliver gives what is due to the end that reads it.
func (l *link) deliver(way way) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	f, e := &l.flows[way], l.ends[way]
	if l.w.quiet[way] > 0 {
		return
	}
	for len(f.queue) > 0 && !f.queue[0].due.After(time.Now()) {
		if p := f.queue[0]; p.data == nil {
			e.over = true
		} else if !e.closed {
			e.buf = append(e.buf, p.data...)
			if way == back && timed(p.data) {
				l.w.heard = time.Now()
			}
		}
		f.queue = f.queue[1:]
	}
	e.nudge()
	l.arm(way)
	if l.ends[there].closed && l.ends[back].closed && len(l.flows[there].queue)+len(l.flows[back].queue) == 0 {
		delete(l.w.links, l)
	}
}

func (w *wire) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.awake)
	w.awake = make(chan struct{})
	for l := range w.links {
		l.arm(there)
		l.arm(back)
	}
}

// cut breaks all connections; what is under way is lost. mu is held.
func (w *wire) cut() {
	for l := range w.links {
		l.cut()
	}
}

func (l *link) cut() {
	for way := range l.flows {
		l.flows[way].queue, l.flows[way].lost = nil, true
		l.ends[way].over, l.ends[way].buf = true, nil
		l.ends[way].nudge()
	}
	delete(l.w.links, l)
}

// An end is a net.Conn. Its fields are guarded by the wire's mutex.
type end struct {
	link     *link
	reads    way
	buf      []byte
	over     bool // nothing more comes
	closed   bool // from this side
	deadline time.Time
	wake     chan struct{} // there is something to see; of one
}

func (e *end) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// look is what a read finds; wait is a timeout, 0 for ever.
func (e *end) look(p []byte) (n int, wait time.Duration, err error) {
	e.link.w.mu.Lock()
	defer e.link.w.mu.Unlock()
	switch {
	case e.closed:
		return 0, 0, net.ErrClosed
	case len(e.buf) > 0:
		n = copy(p, e.buf)
		e.buf = e.buf[n:]
		return n, 0, nil
	case e.over:
		return 0, 0, errReset
	case !e.deadline.IsZero():
		if wait = time.Until(e.deadline); wait <= 0 {
			return 0, 0, errTimeout{}
		}
	}
	return 0, wait, nil
}

func (e *end) Read(p []byte) (int, error) {
	for {
		n, wait, err := e.look(p)
		if n > 0 || err != nil {
			return n, err
		}
		if wait == 0 {
			<-e.wake
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-e.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (e *end) Write(p []byte) (int, error) {
	e.link.w.mu.Lock()
	defer e.link.w.mu.Unlock()
	if e.closed {
		return 0, net.ErrClosed
	}
	if e.over {
		return 0, errReset
	}
	e.link.send(1-e.reads, bytes.Clone(p))
	return len(p), nil
}

func (e *end) Close() error {
	e.link.w.mu.Lock()
	defer e.link.w.mu.Unlock()
	if !e.closed {
		e.closed, e.buf = true, nil
		e.link.send(1-e.reads, nil)
		e.nudge()
	}
	return nil
}

func (e *end) SetDeadline(t time.Time) error {
	e.link.w.mu.Lock()
	defer e.link.w.mu.Unlock()
	e.deadline = t
	e.nudge()
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error { return e.SetDeadline(t) }
func (e *end) SetWriteDeadline(time.Time) error  { return nil } // writing never waits
func (e *end) LocalAddr() net.Addr               { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (e *end) RemoteAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379} }

// SyscallConn lets go-redis' pool see, as at a socket, that an idle connection has broken; else each broken one would cost a
// request, and its pause.
func (e *end) SyscallConn() (syscall.RawConn, error) {
	e.link.w.mu.Lock()
	defer e.link.w.mu.Unlock()
	switch {
	case e.closed:
		return nil, net.ErrClosed
	case e.over:
		return nil, errReset
	case len(e.buf) > 0:
		return nil, errors.New("an idle connection has an answer to nothing")
	}
	return sound{}, nil
}

// sound is what a look at a connection finds that is in order: nothing to read.
type sound struct{}

func (sound) Control(func(uintptr)) error    { return nil }
func (sound) Read(func(uintptr) bool) error  { return nil }
func (sound) Write(func(uintptr) bool) error { return nil }

var errReset = errors.New("connection reset by peer")

// errTimeout is what net reports.
type errTimeout struct{}

func (errTimeout) Error() string   { return "i/o timeout" }
func (errTimeout) Timeout() bool   { return true }
func (errTimeout) Temporary() bool { return true }

// vanish lets nothing arrive any more, and nothing fail. mu is held.
func (w *wire) vanish() {
	w.dead = true
	for l := range w.links {
		for way := range l.flows {
			l.flows[way].queue, l.flows[way].lost = nil, true
		}
	}
}
