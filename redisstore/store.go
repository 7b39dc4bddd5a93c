package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// New returns a store on a client of go-redis: *redis.Client or *redis.ClusterClient. For any other
// client, and for a client that is nil or was not made by its constructor, it returns a store whose
// methods all fail with the reason. holdfast.New refuses such a store. New neither sends anything
// nor starts a goroutine, and never panics.
func New(rdb redis.UniversalClient) store.Store {
	switch rdb := rdb.(type) {
	case nil:
		return store.Unusable(errors.New("redisstore: the client is nil"))
	case *redis.Client:
		if !made(func() { _ = *rdb.Options() }) {
			return store.Unusable(errors.New("redisstore: the *redis.Client is nil, " +
				"or not from redis.NewClient or redis.NewFailoverClient"))
		}
		if isURL(rdb.Options().Addr) {
			return store.Unusable(errAddress)
		}
		return &server{id: rdb.Options().Addr, node: newNode(rdb)}
	case *redis.ClusterClient:
		if !made(func() { _ = *rdb.Options() }) {
			return store.Unusable(errors.New("redisstore: the *redis.ClusterClient is nil, " +
				"or not from redis.NewClusterClient"))
		}
		if slices.ContainsFunc(rdb.Options().Addrs, isURL) {
			return store.Unusable(errAddress)
		}
		return &cluster{rdb: rdb}
	case *redis.Ring:
		return store.Unusable(errors.New("redisstore: a *redis.Ring cannot hold locks: " +
			"its servers know nothing of each other, and a lock would be forgotten when one comes or goes; " +
			"give each server a client and use holdfast.NewQuorum"))
	}
	return store.Unusable(fmt.Errorf("redisstore: a %T is neither *redis.Client nor *redis.ClusterClient", rdb))
}

// errAddress shows nothing of the URL, which may hold a password. Every error of a connection to
// the URL would show it.
var errAddress = errors.New("redisstore: the address of the client is a URL: " +
	"redis.ParseURL makes options of one, redis.ParseClusterURL those of a cluster")

// isURL reports whether a URL of a server stands where HOST:PORT belongs.
func isURL(addr string) bool {
	scheme, _, _ := strings.Cut(addr, "://")
	return scheme != addr && slices.Contains([]string{"redis", "rediss", "unix", "valkey", "valkeys"},
		strings.ToLower(scheme))
}

// made reports whether a client's options can be read, which they cannot in a nil or zero client.
func made(read func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	read()
	return
}

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
