package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/store"
)

// A server is a store on one server, or on the master that sentinels name.
type server struct {
	id string // of its only node
	*node
}

// Address returns where the server is, for errors; empty of the master that sentinels name, which
// may be another by now.
func (s *server) Address() string {
	if s.id == "FailoverClient" { // as go-redis calls it
		return ""
	}
	return s.id
}

// is fails for the name of another node.
func (s *server) is(node string) error {
	if node != "" && node != s.id {
		return fmt.Errorf("redisstore: no node %q, there is only %q", node, s.id)
	}
	return nil
}

func (s *server) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	if err := s.is(node); err != nil {
		return store.Unsent(len(commands), err)
	}
	return s.do(ctx, commands)
}

func (s *server) Nodes(context.Context) (store.Nodes, error) {
	return store.Nodes{Addresses: []string{s.id}}, nil
}

func (s *server) Refresh(context.Context, string) error { return nil }

func (s *server) Renew(node string) {
	if s.is(node) == nil {
		s.renew()
	}
}

func (s *server) Listen(ctx context.Context, node string, sharded bool, events store.Events) (store.Listener, error) {
	if err := errors.Join(s.is(node), ctx.Err()); err != nil {
		return nil, err
	}
	return listen(s.rdb, sharded, events), nil
}
