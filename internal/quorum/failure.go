package quorum

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// NoMajority says that fewer nodes answered than a majority, of those that count. It is the Err of
// a *protocol.Failure.
type NoMajority struct {
	Need  int
	Nodes []protocol.Node // all, in their order
}

func (e *NoMajority) Error() string {
	var out strings.Builder
	fmt.Fprintf(&out, "no majority: %d of %d nodes are needed", e.Need, len(e.Nodes))
	for _, n := range e.Nodes {
		out.WriteString("; " + n.String())
	}
	return out.String()
}

// noAnswer returns the failure of a request about a name that got no answer.
func noAnswer(op, name string, err error) *protocol.Failure {
	return &protocol.Failure{Op: op, Name: name, Reason: protocol.NoAnswer, Err: err}
}

// noAnswer returns the failure of a request to the node that got no answer.
func (n *node) noAnswer(op, name string, err error) *protocol.Failure {
	failure := noAnswer(op, name, err)
	failure.Node = nodeName(n.index)
	return failure
}

var errNotYet = errors.New("no answer yet, and none could have made a majority")

// noMajority returns the error that too few nodes of those that count have answered. Waiting cures
// it, unless so many nodes refuse for another reason that there can be no majority.
func (t *tally) noMajority(op, name string) *protocol.Failure {
	nodes := t.nodes()
	for i := range nodes { // a question for many names, or for none, becomes one for this name
		if failure, ok := nodes[i].Err.(*protocol.Failure); ok && failure.Name == "" {
			own := *failure
			own.Op, own.Name = op, name
			nodes[i].Err = &own
		}
	}
	none := &NoMajority{Need: t.p.need, Nodes: nodes}
	out := &protocol.Failure{Op: op, Name: name, Reason: protocol.Unreachable, Err: none}
	reasons := map[protocol.Reason]int{}
	for _, n := range nodes {
		var failure *protocol.Failure
		if n.SameAs != "" {
			reasons[protocol.SameServer]++
		}
		if errors.As(n.Err, &failure) {
			reasons[failure.Reason]++
			out.Unknown = out.Unknown || failure.Unknown
		}
	}
	if reasons[protocol.NoAnswer] > 0 {
		out.Reason = protocol.NoAnswer
	}
	if refused, usual := countLasting(reasons); refused > t.p.spare() {
		out.Reason = usual
	}
	return out
}

// countLasting returns how many nodes refuse for long, and the reason that most of them give.
func countLasting(reasons map[protocol.Reason]int) (nodes int, usual protocol.Reason) {
	for reason, n := range reasons {
		if reason.Passing() {
			continue
		}
		nodes += n
		if most := reasons[usual]; n > most || n == most && reason < usual {
			usual = reason
		}
	}
	return nodes, usual
}
