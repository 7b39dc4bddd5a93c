package memory

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Client is the way of one process to a Server: a protocol.Protocol.
type Client struct {
	server        *Server
	prefix        string
	subscriptions []*listening // guarded by the server's mutex
}

// Connect makes a client. Clients exclude each other only under the same prefix.
func (s *Server) Connect(prefix string) *Client { return &Client{server: s, prefix: prefix} }

// Features implements protocol.Protocol.
func (c *Client) Features() protocol.Features { return c.server.features }

// Bind implements protocol.Protocol.
func (c *Client) Bind(spec protocol.Spec) protocol.Resource { return &resource{client: c, spec: spec} }

// Renew implements protocol.Protocol.
func (c *Client) Renew(ctx context.Context, renewals []protocol.Renewal, done func(i int, r protocol.Renewed)) {
	for i, renewal := range renewals {
		done(i, renewal.Resource.(*resource).renew(ctx, renewal))
	}
}

// Listen implements protocol.Protocol.
func (c *Client) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listening, error) {
	if err := over(ctx, "listen", c.prefix, time.Time{}); err != nil {
		return nil, err
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	l := &listening{client: c, sink: sink}
	c.subscriptions = append(c.subscriptions, l)
	return l, nil
}

// subscribed tells whether messages reach the process. The server's mutex is held, as in tell.
func (c *Client) subscribed() bool { return len(c.subscriptions) > 0 }

func (c *Client) tell(message func(protocol.Sink)) {
	for _, l := range c.subscriptions {
		message(l.sink)
	}
}

type listening struct {
	client *Client
	sink   protocol.Sink
}

// Hear implements protocol.Listening: one channel serves all names.
func (l *listening) Hear(context.Context, protocol.Watched) (time.Time, error) {
	return time.Time{}, nil
}

// Close implements protocol.Listening.
func (l *listening) Close() {
	l.client.server.mu.Lock()
	defer l.client.server.mu.Unlock()
	c := l.client
	c.subscriptions = slices.DeleteFunc(c.subscriptions, func(other *listening) bool { return other == l })
}
