// Code generated from internal/network by TestNetworkTwin; DO NOT EDIT.

package network

import (
	"net"
	"time"
)

// A link carries bytes between a client and the server, each way through a queue without limit: writing never waits.
// Its fields are guarded by Network.mu.
type link struct {
	n              *Network
	client, server net.Conn
	there, back    queue
	deaf, mute     bool // nothing arrives at the server, at the client
	cut            bool
	listens        bool // the client has subscribed
}

// A queue is what was written one way and has not arrived.
type queue struct {
	chunks []chunk
	ended  bool // the writer has closed
}

type chunk struct {
	data []byte
	due  time.Time
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
		l.n.change(func() {
			data, due := append([]byte(nil), buf[:n]...), time.Now()
			if q == &l.there {
				l.mute = l.mute || struck(&l.n.answers, data)
				l.deaf = l.deaf || struck(&l.n.lost, data)
				l.listens = l.listens || contains(data, "subscribe")
			} else {
				due = due.Add(l.n.delay)
			}
			if silent := q == &l.there && l.deaf || q == &l.back && l.mute; n > 0 && !silent {
				q.chunks = append(q.chunks, chunk{data, due})
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
		l.n.change(func() { delete(l.n.links, l) })
	}
}

// next waits for what may arrive; false: nothing more will.
func (l *link) next(q *queue) ([]byte, bool) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	for !l.cut {
		switch {
		case l.n.paused:
			l.n.moved.Wait()
		case len(q.chunks) == 0 && q.ended:
			return nil, false
		case len(q.chunks) == 0:
			l.n.moved.Wait()
		case time.Until(q.chunks[0].due) > 0:
			timer := time.AfterFunc(time.Until(q.chunks[0].due), l.n.wake)
			l.n.moved.Wait()
			timer.Stop()
		default:
			first := q.chunks[0]
			q.chunks = q.chunks[1:]
			return first.data, true
		}
	}
	return nil, false
}
