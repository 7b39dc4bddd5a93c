package storetest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

// plain is a store on one server without a client library: RESP over connections of its own. It
// shows what an adapter has to do, and no more.
type plain struct {
	address, user, password string

	mu     sync.Mutex
	closed bool
	idle   []*plainConn
}

var errClosed = errors.New("the store is closed")

func (p *plain) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.idle = nil
}

// at fails for the name of another node, and when ctx is over.
func (p *plain) at(ctx context.Context, node string) error {
	if node != "" && node != p.address {
		return fmt.Errorf("no node %q", node)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func (p *plain) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	replies := make([]store.Reply, len(commands))
	fail := func(from int, err error, unsent bool) []store.Reply {
		for i := from; i < len(replies); i++ {
			replies[i] = store.Reply{Err: err, Unsent: unsent}
		}
		return replies
	}
	if err := p.at(ctx, node); err != nil {
		return fail(0, err, true)
	}
	c, err := p.take(ctx)
	var line refusal
	if errors.As(err, &line) {
		for i := range replies {
			replies[i].Refused = string(line)
		}
		return replies
	}
	if err != nil {
		return fail(0, err, true)
	}
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	if err := c.write(commands...); err != nil {
		_ = c.Close()
		return fail(0, err, false) // some may have been written
	}
	for i := range replies {
		if replies[i], err = c.reply(); err != nil {
			_ = c.Close()
			return fail(i, err, false)
		}
	}
	p.putBack(c)
	return replies
}

func (p *plain) Nodes(context.Context) (store.Nodes, error) {
	return store.Nodes{Addresses: []string{p.address}}, nil
}

func (p *plain) Refresh(context.Context, string) error { return nil }

func (p *plain) Renew(string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.idle = nil
}

func (p *plain) Address() string { return p.address }

// take returns a connection that nobody else uses.
func (p *plain) take(ctx context.Context) (*plainConn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	return p.dial(ctx)
}

func (p *plain) putBack(c *plainConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return
	}
	p.idle = append(p.idle, c)
}

func (p *plain) dial(ctx context.Context) (*plainConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	c := &plainConn{Conn: conn, in: bufio.NewReader(conn)}
	if p.user == "" {
		return c, nil
	}
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	if err = c.write(store.Command{"AUTH", p.user, p.password}); err == nil {
		var r store.Reply
		if r, err = c.reply(); err == nil && r.Refused != "" {
			err = refusal(r.Refused)
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// A refusal is the error line of a server that does not know the user.
type refusal string

func (r refusal) Error() string { return string(r) }

// A plainConn speaks RESP2.
type plainConn struct {
	net.Conn
	in *bufio.Reader
}

// write writes commands in one flush.
func (c *plainConn) write(commands ...store.Command) error {
	var out []byte
	for _, command := range commands {
		out = fmt.Appendf(out, "*%d\r\n", len(command))
		for _, arg := range command {
			text, isBytes := arg.([]byte)
			if !isBytes {
				text = fmt.Append(nil, arg)
			}
			out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(text), text)
		}
	}
	_, err := c.Write(out)
	return err
}

// reply reads one answer. The error is one of the connection.
func (c *plainConn) reply() (store.Reply, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return store.Reply{}, err
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '-':
		return store.Reply{Refused: text}, nil
	case '+':
		return store.Reply{Value: text}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return store.Reply{}, err
	case kind == ':':
		return store.Reply{Value: n}, nil
	case n < 0:
		return store.Reply{}, nil
	case kind == '$':
		data := make([]byte, n+2)
		_, err := io.ReadFull(c.in, data)
		return store.Reply{Value: string(data[:n])}, err
	}
	list := make([]any, n)
	for i := range list {
		element, err := c.reply()
		if err != nil {
			return store.Reply{}, err
		}
		if list[i] = element.Value; element.Refused != "" {
			list[i] = element.Refused
		}
	}
	return store.Reply{Value: list}, nil
}

func (p *plain) Listen(ctx context.Context, node string, sharded bool, events store.Events) (store.Listener, error) {
	if err := p.at(ctx, node); err != nil {
		return nil, err
	}
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	l := &plainListener{plainConn: c, events: events, on: "SUBSCRIBE", off: "UNSUBSCRIBE"}
	if sharded {
		l.on, l.off = "SSUBSCRIBE", "SUNSUBSCRIBE"
	}
	go l.read()
	return l, nil
}

// A plainListener is one connection for messages.
type plainListener struct {
	*plainConn
	events  store.Events
	on, off string

	mu     sync.Mutex
	closed bool
	asked  []store.Command // and not answered: a refusal does not name its channel
}

func (l *plainListener) Subscribe(ctx context.Context, channels ...string) error {
	return l.ask(ctx, l.on, channels)
}

func (l *plainListener) Unsubscribe(ctx context.Context, channels ...string) error {
	return l.ask(ctx, l.off, channels)
}

func (l *plainListener) ask(ctx context.Context, word string, channels []string) error {
	var questions []store.Command
	for _, channel := range channels {
		questions = append(questions, store.Command{word, channel})
	}
	l.mu.Lock()
	l.asked = append(l.asked, questions...)
	l.mu.Unlock()
	deadline, _ := ctx.Deadline()
	_ = l.SetWriteDeadline(deadline)
	return l.write(questions...)
}

func (l *plainListener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	_ = l.plainConn.Close()
}

// read reports what comes, until the connection ends.
func (l *plainListener) read() {
	for {
		r, err := l.reply()
		if err != nil {
			l.mu.Lock()
			closed := l.closed
			l.mu.Unlock()
			_ = l.plainConn.Close()
			if !closed {
				l.events.Closed(err)
			}
			return
		}
		if r.Refused != "" {
			l.events.Refused(l.answered("").(string), r.Refused)
			continue
		}
		said := r.Value.([]any)
		channel := said[1].(string)
		switch said[0] {
		case "message", "smessage":
			l.events.Message(channel, said[2].(string))
		case "subscribe", "ssubscribe":
			l.answered("")
			l.events.Subscribed(channel)
		default:
			l.answered(channel)
			l.events.Unsubscribed(channel)
		}
	}
}

// answered takes out the oldest question, and returns its channel. With the name of a channel it
// does so only if that was to be given up: the server may take it away by itself.
func (l *plainListener) answered(off string) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off != "" && (len(l.asked) == 0 || l.asked[0][0] != l.off || l.asked[0][1] != off) {
		return nil
	}
	channel := l.asked[0][1]
	l.asked = l.asked[1:]
	return channel
}
