package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// A cable is the network between one client and the server of a scene: silent, slow, losing or cut, as a test says.
// As in a real one, writing into silence succeeds, and what was written before the client gave its connection up
// still arrives afterwards.
type cable struct {
	server *miniredis.Miniredis

	mu    sync.Mutex
	moved *sync.Cond
	quiet [2]bool // by way
	dead  bool    // nobody is there to dial
	rules []*rule
	lines map[*line]bool
}

type way int

const (
	there way = iota // from the client to the server
	back
)

// A rule is for what passes one way and has a word in it.
type rule struct {
	way   way
	word  string
	times int           // how often it strikes
	delay time.Duration // 0: lost
}

// A line is one connection. A packet is due at a time, and no sooner than those before it.
type line struct {
	client, server net.Conn
	queue          [2][]packet
	ended          [2]bool
	cut            bool
	done           int // of its two ways
}

type packet struct {
	data []byte
	due  time.Time
}

func newCable(server *miniredis.Miniredis) *cable {
	w := &cable{server: server, lines: map[*line]bool{}}
	w.moved = sync.NewCond(&w.mu)
	return w
}

func (w *cable) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	w.moved.Broadcast()
}

// silence lets nothing arrive any more, both ways or the one that is given, and nothing fail.
func (w *cable) silence(ways ...way) {
	w.change(func() {
		for _, way := range ways {
			w.quiet[way] = true
		}
		w.quiet[0], w.quiet[1] = w.quiet[0] || len(ways) == 0, w.quiet[1] || len(ways) == 0
	})
}

func (w *cable) resume() { w.change(func() { w.quiet = [2]bool{}; w.dead = false }) }

// lose drops what passes with the word in it, so many times.
func (w *cable) lose(way way, word string, times int) {
	w.change(func() { w.rules = append(w.rules, &rule{way, word, times, 0}) })
}

// slow delays it, and all that comes behind it on its connection.
func (w *cable) slow(way way, word string, times int, delay time.Duration) {
	w.change(func() { w.rules = append(w.rules, &rule{way, word, times, delay}) })
}

// cut closes all connections, and returns when the server knows; kill also refuses new ones, as those of a process that
// is gone.
func (w *cable) cut() {
	w.change(func() {
		for l := range w.lines {
			l.cut = true
			_, _ = l.client.Close(), l.server.Close()
		}
	})
	synctest.Wait()
}

func (w *cable) kill() { w.change(func() { w.dead = true }); w.cut() }

func (w *cable) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	defer context.AfterFunc(ctx, w.moved.Broadcast)()
	w.mu.Lock()
	defer w.mu.Unlock()
	for (w.quiet[there] || w.quiet[back]) && !w.dead && ctx.Err() == nil {
		w.moved.Wait()
	}
	err := ctx.Err()
	if w.dead {
		err = errors.New("connection refused")
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	server, err := w.server.Dial()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	outer, inner := net.Pipe()
	l := &line{client: inner, server: server}
	w.lines[l] = true
	go w.take(l, inner, there)
	go w.take(l, server, back)
	go w.give(l, server, there)
	go w.give(l, inner, back)
	return outer, nil
}

// take reads what one end writes.
func (w *cable) take(l *line, from net.Conn, way way) {
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		w.change(func() {
			p := packet{bytes.Clone(buf[:n]), time.Now()}
			if n > 0 && w.passes(&p, way) {
				l.queue[way] = append(l.queue[way], p)
			}
			l.ended[way] = err != nil
		})
		if err != nil {
			return
		}
	}
}

// passes applies the rules; false: it is lost. mu is held.
func (w *cable) passes(p *packet, way way) bool {
	for _, r := range w.rules {
		if r.way == way && r.times > 0 && bytes.Contains(p.data, []byte(r.word)) {
			r.times--
			p.due = p.due.Add(r.delay)
			return r.delay > 0
		}
	}
	return true
}

// give writes what is due to the other end, and closes it behind the last byte.
func (w *cable) give(l *line, to net.Conn, way way) {
	for {
		data := w.next(l, way)
		if _, err := to.Write(data); data == nil || err != nil {
			break
		}
	}
	_ = to.Close()
	w.change(func() {
		if l.done++; l.done == 2 {
			delete(w.lines, l)
		}
	})
}

func (w *cable) next(l *line, way way) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch q := l.queue[way]; {
		case l.cut:
			return nil
		case w.quiet[way]:
		case len(q) == 0 && l.ended[way]:
			return nil
		case len(q) == 0:
		case time.Now().Before(q[0].due):
			time.AfterFunc(time.Until(q[0].due), w.moved.Broadcast)
		default:
			l.queue[way] = q[1:]
			return q[0].data
		}
		w.moved.Wait()
	}
}
