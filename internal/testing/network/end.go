package network

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

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
