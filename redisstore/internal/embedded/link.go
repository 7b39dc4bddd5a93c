package embedded

import "net"

// A link carries bytes between a client and the server, each way through a queue without limit: writing never waits.
// Its fields are guarded by Server.mu.
type link struct {
	s              *Server
	client, server net.Conn
	there, back    queue
	deaf, mute     bool // nothing arrives at the server, at the client
	cut            bool
}

// A queue is what was written one way and has not arrived.
type queue struct {
	chunks [][]byte
	ended  bool // the writer has closed
}

// start runs four goroutines, which end with the connections.
func (l *link) start() {
	go l.take(l.client, &l.there)
	go l.take(l.server, &l.back)
	go l.give(l.server, &l.there)
	go l.give(l.client, &l.back)
}

// take reads what one end writes.
func (l *link) take(from net.Conn, q *queue) {
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		l.s.change(func() {
			chunk := append([]byte(nil), buf[:n]...)
			if q == &l.there {
				l.mute = l.mute || struck(&l.s.answers, chunk)
				l.deaf = l.deaf || struck(&l.s.lost, chunk)
			}
			if silent := q == &l.there && l.deaf || q == &l.back && l.mute; n > 0 && !silent {
				q.chunks = append(q.chunks, chunk)
			}
			q.ended = q.ended || err != nil
		})
		if err != nil {
			return
		}
	}
}

// give writes to the other end, while the network is not silent, and closes it behind the last byte.
func (l *link) give(to net.Conn, q *queue) {
	for {
		chunk, ok := l.next(q)
		if !ok {
			break
		}
		if _, err := to.Write(chunk); err != nil {
			break
		}
	}
	_ = to.Close()
	if q == &l.back {
		l.s.change(func() { delete(l.s.links, l) })
	}
}

func (l *link) next(q *queue) ([]byte, bool) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	for !l.cut && (l.s.paused || len(q.chunks) == 0 && !q.ended) {
		l.s.moved.Wait()
	}
	if l.cut || len(q.chunks) == 0 {
		return nil, false
	}
	chunk := q.chunks[0]
	q.chunks = q.chunks[1:]
	return chunk, true
}
