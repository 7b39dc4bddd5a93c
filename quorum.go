package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/quorum"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/store"
)

// NewQuorum makes a client on three to nine independent masters, an odd number: each a store of its own, a single server
// that replicates to nobody and knows nothing of the others. A lock is held where a majority of them holds it, so it goes
// on, without a pause, while a minority is down. All clients of a quorum must be given the same masters.
//
// A master that lost its memory does not count until the longest Config.MaxTTL of all clients is over, as it may have forgotten
// a lock: so nothing can be locked in that first time of a new quorum, unless Config.TrustNewNodes says that there is nothing to forget.
//
// There is no common line: no order is promised between processes. Semaphores and latches are refused, with the reason.
// While fewer than a majority answer, Lock goes on asking, and TryLock returns a *QuorumError. What a quorum promises,
// and when not to use one, is in docs/quorum.md.
//
// It sends nothing. The error is an *ArgumentError with every bad field. Equal stores are refused; two stores of one server
// are not noticed.
func NewQuorum(stores []store.Store, config *Config) (*Client, error) {
	filled, err := config.filled()
	var bad problems
	bad.check(len(stores) >= 3 && len(stores) <= 9 && len(stores)%2 == 1, "stores", len(stores), "3, 5, 7 or 9")
	if config != nil {
		bad.check(config.Replicas.Count == 0, "Config.Replicas.Count", config.Replicas.Count, "0: a quorum's masters replicate to nobody")
	}
	for i, s := range stores {
		bad.checkStore(fmt.Sprintf("stores[%d]", i), s)
		for j := range stores[:i] {
			if same(stores[j], s) {
				bad.add(fmt.Sprintf("stores[%d]", i), fmt.Sprintf("the same as stores[%d]", j), "a master of its own")
				break
			}
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
		routed[i] = wire.Route(s)
	}
	p := quorum.New(routed, quorum.Config{
		Prefix:  filled.Prefix,
		Process: processID(),
		MaxTTL:  filled.MaxTTL,
		Trust:   filled.TrustNewNodes,
		Logger:  filled.Logger,
	})
	client := newClient(p, filled)
	client.quorum = p
	return client, nil
}

// A QuorumNode is what one master of a quorum said.
type QuorumNode struct {
	Node   string        // "node 1" is the first store that NewQuorum was given
	Counts bool          // towards a majority; false also when it did not answer
	Why    string        // it does not count, when it answered
	Age    time.Duration // since its memory began; 0 when not asked
	Answer string        // about the lock, in words; empty when it was not about one
	Err    error         // why it did not answer
}

// String is the node and what it said, in one line.
func (n QuorumNode) String() string {
	switch {
	case n.Err != nil:
		if failed, ok := n.Err.(*StoreError); ok {
			return n.Node + ": " + failed.why()
		}
		return n.Node + ": " + inner(n.Err)
	case !n.Counts:
		return fmt.Sprintf("%s does not count: %s", n.Node, n.Why)
	case n.Answer != "":
		return n.Node + ": " + n.Answer
	}
	return n.Node + " counts"
}

// A QuorumError says that fewer masters than a majority answered, of those that count. It matches ErrUnavailable where
// a *StoreError of one server would. Nothing is held: what a minority granted is given back.
type QuorumError struct {
	Op    string // what was asked
	Name  string // the lock
	Need  int    // how many masters are a majority
	Nodes []QuorumNode

	unavailable bool
}

func (e *QuorumError) Error() string {
	said := make([]string, len(e.Nodes))
	for i, n := range e.Nodes {
		said[i] = n.String()
	}
	return fmt.Sprintf("holdfast: %s %q: no majority, %d of %d nodes are needed: %s", e.Op, shortened(e.Name), e.Need, len(e.Nodes),
		strings.Join(said, "; "))
}

// Is matches ErrUnavailable where the masters could not be asked or cannot serve now.
func (e *QuorumError) Is(target error) bool { return target == ErrUnavailable && e.unavailable }

// Quorum asks every master of a quorum whether it counts, and why not, in one round trip of at most a second. A master
// that does not answer is no error: its QuorumNode says so. The error is ErrClosed, or an *ArgumentError when the client is
// none of NewQuorum's or ctx is nil.
func (c *Client) Quorum(ctx context.Context) ([]QuorumNode, error) {
	var bad problems
	bad.check(c != nil && c.quorum != nil, "Client", nil, "made by NewQuorum")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	if err := bad.err("Client.Quorum"); err != nil {
		return nil, err
	}
	nodes, err := c.quorum.Status(ctx)
	if err != nil {
		return nil, ErrClosed
	}
	return quorumNodes(nodes), nil
}

func quorumNodes(nodes []quorum.Node) []QuorumNode {
	out := make([]QuorumNode, len(nodes))
	for i, n := range nodes {
		out[i] = QuorumNode{Node: n.Name, Counts: n.Counts && n.Err == nil, Why: n.Why, Age: n.Age, Answer: n.Answer, Err: public("ask", "", n.Err)}
	}
	return out
}

// quorumError is the documented form of a failure for want of a majority; nil when it is another.
func quorumError(failure *protocol.Failure) error {
	var none *quorum.NoMajority
	if !errors.As(failure.Err, &none) {
		return nil
	}
	one := StoreError{Kind: kindOf(failure.Reason)}
	return &QuorumError{Op: failure.Op, Name: failure.Name, Need: none.Need, Nodes: quorumNodes(none.Nodes), unavailable: one.Is(ErrUnavailable)}
}
