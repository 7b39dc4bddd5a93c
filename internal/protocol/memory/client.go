package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Client is the way of one process to a Server: a protocol.Protocol.
type Client struct {
	server        *Server
	prefix        string
	subscriptions []*listener // guarded by the server's mutex
}

// Connect makes a client. Clients exclude each other only under the same prefix.
func (s *Server) Connect(prefix string) *Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Client{server: s, prefix: prefix}
	s.clients = append(s.clients, c)
	return c
}

// Features implements protocol.Protocol.
func (c *Client) Features() protocol.Features { return c.server.features }

// Bind implements protocol.Protocol.
func (c *Client) Bind(spec protocol.Spec) protocol.Resource {
	spec.Life = cmp.Or(spec.Life, protocol.PlaceLife)
	return &resource{client: c, spec: spec}
}

// Renew implements protocol.Protocol.
func (c *Client) Renew(ctx context.Context, renewals []protocol.Renewal, done func(i int, r protocol.RenewalAnswer)) {
	for i, renewal := range renewals {
		done(i, renewal.Resource.(*resource).renew(ctx, renewal))
	}
}

// Listen implements protocol.Protocol.
func (c *Client) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listener, error) {
	return c.ListenTicket(ctx, "", sink)
}

// ListenTicket implements protocol.Protocol.
func (c *Client) ListenTicket(ctx context.Context, id protocol.ID, sink protocol.Sink) (protocol.Listener, error) {
	if err := c.server.over(ctx, "listen", c.prefix, time.Time{}); err != nil {
		return nil, err
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	l := &listener{client: c, sink: sink, ticket: id}
	if at := (keptTicket{c.prefix, id}); id != "" {
		c.server.kept[at] = append(c.server.kept[at], l)
	} else {
		c.subscriptions = append(c.subscriptions, l)
	}
	return l, nil
}

// subscribed reports whether messages reach the process. The server's mutex is held, as in tell.
func (c *Client) subscribed() bool { return len(c.subscriptions) > 0 }

func (c *Client) tell(message func(protocol.Sink)) {
	for _, l := range c.subscriptions {
		message(l.sink)
	}
}

type listener struct {
	client *Client
	sink   protocol.Sink
	ticket protocol.ID // of a kept place; empty: it listens for all tickets of the process
}

// Hear implements protocol.Listener: one channel serves all names.
func (l *listener) Hear(context.Context, protocol.Subject) (time.Time, error) {
	return time.Time{}, nil
}

// Close implements protocol.Listener.
func (l *listener) Close() {
	l.client.server.mu.Lock()
	defer l.client.server.mu.Unlock()
	c, s := l.client, l.client.server
	mine := func(other *listener) bool { return other == l }
	c.subscriptions = slices.DeleteFunc(c.subscriptions, mine)
	at := keptTicket{c.prefix, l.ticket}
	if s.kept[at] = slices.DeleteFunc(s.kept[at], mine); len(s.kept[at]) == 0 {
		delete(s.kept, at)
	}
}
