package quorum

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A majority may come about as long as so many nodes answer, or refuse for a reason that passes.
func TestNoMajorityOfPassingReasonsPasses(t *testing.T) {
	p := &Protocol{need: 2}
	for i := range 3 {
		p.nodes = append(p.nodes, &node{p: p, index: i})
	}
	for name, c := range map[string]struct {
		reasons []protocol.Reason
		passes  bool
	}{
		"out of memory": {[]protocol.Reason{protocol.OutOfMemory, protocol.OutOfMemory, protocol.OutOfMemory},
			true},
		"cannot persist":   {[]protocol.Reason{protocol.Misconfigured, protocol.Misconfigured}, true},
		"loading and away": {[]protocol.Reason{protocol.Loading, protocol.NoAnswer, protocol.Unreachable}, true},
		"one denies":       {[]protocol.Reason{protocol.Denied, protocol.OutOfMemory}, true},
		"two deny":         {[]protocol.Reason{protocol.Denied, protocol.OutOfMemory, protocol.Denied}, false},
		"two refuse for ever": {[]protocol.Reason{protocol.Other, protocol.Unsupported, protocol.Misconfigured},
			false},
		"one refuses, one away": {[]protocol.Reason{protocol.Other, protocol.Unreachable}, true},
	} {
		answers := &tally{p: p}
		for i, reason := range c.reasons {
			answers.add(&reply{node: p.nodes[i], err: &protocol.Failure{Reason: reason, Err: errors.New("no")}})
		}
		if err := answers.noMajority("lock", "n"); err.Reason.Passing() != c.passes {
			t.Errorf("%s: %v", name, err)
		}
	}
}
