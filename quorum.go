package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/quorum"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/store"
)

// NewQuorum makes a client on three to nine independent masters, an odd number. Each store is a
// single server that replicates to no other server and knows nothing of the others. A lock is held
// if a majority of the masters holds it, so it goes on while a minority is down. All clients of a
// quorum must be given the same masters. docs/quorum.md says what a quorum promises, and when not
// to use one.
//
// A master that lost its memory does not count until the longest Config.MaxTTL of all clients is
// over. Nothing can therefore be locked in that first time of a new quorum, unless
// Config.TrustNewNodes says that there is nothing to forget.
//
// There is no common queue, and no order is promised between processes. Semaphores, latches and
// Config.Replicas are refused. While fewer masters than a majority answer, Lock goes on asking, and
// TryLock returns a *QuorumError.
//
// NewQuorum sends nothing. The error is an *ArgumentError with every bad field. Equal stores are
// refused, and so are stores whose clients have one address, which is not resolved. If two stores
// lead to one server all the same, it counts once, and Client.Ready, Client.Quorum and the logger
// say so. If the servers are too few for a majority, each call returns a *QuorumError at once,
// which does not match ErrUnavailable.
func NewQuorum(stores []store.Store, config *Config) (*Client, error) {
	filled, err := config.withDefaults()
	var bad problems
	bad.check(len(stores) >= 3 && len(stores) <= 9 && len(stores)%2 == 1, "stores", len(stores), "3, 5, 7 or 9")
	if config != nil {
		bad.check(config.Replicas.Count == 0, "Config.Replicas.Count", config.Replicas.Count,
			"0: a quorum's masters replicate to nobody")
		bad.check(!config.NoEvict, "Config.NoEvict", config.NoEvict, "false: every master of a quorum has noeviction")
	}
	for i, s := range stores {
		bad.checkStore(fmt.Sprintf("stores[%d]", i), s)
		for j := range stores[:i] {
			found := ""
			switch {
			case equalStores(stores[j], s):
				found = fmt.Sprintf("the same as stores[%d]", j)
			case haveSameAddress(stores[j], s):
				found = fmt.Sprintf("at %s, as stores[%d] is", storeAddress(s), j)
			default:
				continue
			}
			bad.add(fmt.Sprintf("stores[%d]", i), found, "a master of its own")
			break
		}
	}
	if wrong := bad.err("NewQuorum"); wrong != nil {
		return nil, joinArguments(wrong, err)
	}
	if err != nil {
		return nil, err
	}
	routed := make([]wire.Store, len(stores))
	for i, s := range stores {
		routed[i] = filled.countRequests(wire.Route(s))
	}
	process := processID()
	p := quorum.New(routed, quorum.Config{
		Prefix:  filled.Prefix,
		Process: process,
		MaxTTL:  filled.MaxTTL,
		Trust:   filled.TrustNewNodes,
		Logger:  filled.Logger,
	})
	client := newClient(p, filled, process, routed...)
	client.quorum = p
	return client, nil
}

// A QuorumError says that fewer masters than a majority answered, of those that count. Nothing is
// held: the grants of a minority are given back.
type QuorumError struct {
	Op      string            // the operation, such as "lock"
	Name    string            // the lock
	Need    int               // how many masters are a majority
	Masters []lockinfo.Master // what each of them said

	unavailable bool
}

func (e *QuorumError) Error() string {
	said := make([]string, len(e.Masters))
	for i, m := range e.Masters {
		said[i] = m.String()
	}
	what := e.Op
	if e.Name != "" {
		what += fmt.Sprintf(" %q", shorten(e.Name))
	}
	return fmt.Sprintf("%s%s: no majority, %d of %d nodes are needed: %s", prefix, what, e.Need, len(e.Masters),
		strings.Join(said, "; "))
}

// Is matches ErrUnavailable if the masters are away or cannot serve now.
func (e *QuorumError) Is(target error) bool { return target == ErrUnavailable && e.unavailable }

// Quorum asks every master of a quorum whether it counts, and why not, in one round trip of at most
// 1 s. A master that does not answer is no error: its Master says so. The error is ErrClosed,
// or an *ArgumentError if NewQuorum did not make the client or ctx is nil.
func (c *Client) Quorum(ctx context.Context) ([]lockinfo.Master, error) {
	var bad problems
	bad.check(c != nil && c.engine != nil, "Client", nil, "made by NewQuorum")
	bad.check(len(bad) > 0 || c.quorum != nil, "Client", "made by New", "made by NewQuorum")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	if err := bad.err("Client.Quorum"); err != nil {
		return nil, err
	}
	nodes, err := c.quorum.Status(ctx)
	if err != nil {
		return nil, ErrClosed
	}
	return newMasters(nodes), nil
}

func newMasters(nodes []protocol.Node) []lockinfo.Master {
	out := make([]lockinfo.Master, len(nodes))
	for i, n := range nodes {
		out[i] = newMaster(n, publicError("ask", "", n.Err))
		out[i].Age, out[i].Answer = n.Age, n.Answer
	}
	return out
}

// quorumError returns the documented form of a failure for want of a majority, and nil for any
// other failure.
func quorumError(failure *protocol.Failure) error {
	var none *quorum.NoMajority
	if !errors.As(failure.Err, &none) {
		return nil
	}
	one := StoreError{Kind: newStoreKind(failure.Reason)}
	return &QuorumError{Op: failure.Op, Name: failure.Name, Need: none.Need, Masters: newMasters(none.Nodes),
		unavailable: one.Is(ErrUnavailable)}
}
