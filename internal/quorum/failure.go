package quorum

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// NoMajority says that fewer nodes answered than a majority, of those that count. It is the Err of
// a *protocol.Failure.
type NoMajority struct {
	Need  int
	Nodes []Node // all, in their order
}

func (e *NoMajority) Error() string {
	var out strings.Builder
	fmt.Fprintf(&out, "no majority: %d of %d nodes are needed", e.Need, len(e.Nodes))
	for _, n := range e.Nodes {
		out.WriteString("; " + n.String())
	}
	return out.String()
}

// String is the node and what it said, in one line.
func (n Node) String() string {
	switch {
	case n.Err != nil:
		var failure *protocol.Failure
		if errors.As(n.Err, &failure) {
			return fmt.Sprintf("%s: %s: %v", n.Name, failure.Reason, failure.Err)
		}
		return fmt.Sprintf("%s: %v", n.Name, n.Err)
	case !n.Counts:
		return fmt.Sprintf("%s does not count: %s", n.Name, n.Why)
	case n.Answer != "":
		return n.Name + ": " + n.Answer
	}
	return n.Name + ": answers"
}

var errNotYet = errors.New("no answer yet, and none could have made a majority")

// answerOf is what one node's answer comes to.
func (p *Protocol) answerOf(n *node, f facts, counts bool, err error) Node {
	out := Node{Name: nodeName(n.index), Counts: counts, Err: err}
	if err == nil && !counts {
		out.Why, out.SameAs, out.Age = p.whyNot(f), f.sameAs(), f.age()
	}
	return out
}

// noAnswers are the nodes before any of them has answered.
func (p *Protocol) noAnswers() []Node {
	answers := make([]Node, len(p.nodes))
	for i := range answers {
		answers[i] = Node{Name: nodeName(i), Err: errNotYet}
	}
	return answers
}

// noMajority makes the error. Waiting cures it, unless so many nodes refuse for another reason that
// there can be no majority.
func (p *Protocol) noMajority(op, name string, answers []Node) error {
	reasons := map[protocol.Reason]int{}
	answers = slices.Clone(answers)
	for i := range answers { // a question for many names, or for none, becomes one for this name
		if failure, ok := answers[i].Err.(*protocol.Failure); ok && failure.Name == "" {
			own := *failure
			own.Op, own.Name = op, name
			answers[i].Err = &own
		}
	}
	out := &protocol.Failure{Op: op, Name: name, Reason: protocol.Unreachable, Err: &NoMajority{Need: p.need, Nodes: answers}}
	for _, n := range answers {
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
	if refused, usual := lasting(reasons); refused > len(p.nodes)-p.need {
		out.Reason = usual
	}
	return out
}

// lasting is how many nodes refuse for long, and the reason that most of them give.
func lasting(reasons map[protocol.Reason]int) (nodes int, usual protocol.Reason) {
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
