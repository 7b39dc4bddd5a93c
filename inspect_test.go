package holdfast

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Of a quorum, "free" is said only if a majority says so.
func TestStateAtAQuorum(t *testing.T) {
	counts := protocol.Node{Name: "node 1", Counts: true}
	young := protocol.Node{Name: "node 2", Why: "it may have forgotten a hold"}
	dead := protocol.Node{Name: "node 3",
		Err: &protocol.Failure{Op: "inspect", Node: "node 3", Reason: protocol.Unreachable, Err: errors.New("refused")}}
	odd := protocol.Node{Name: "node 4", Counts: true,
		Inspection: protocol.Inspection{Foreign: &protocol.Foreign{
			Key: "k", Found: "of another type", Want: "a lock's"}}}
	hold := []protocol.Hold{{ID: "an id", State: protocol.HoldTaken, Token: 7}}
	for name, c := range map[string]struct {
		in   protocol.Inspection
		want lockinfo.State
	}{
		"a majority says so": {
			protocol.Inspection{Nodes: []protocol.Node{counts, counts, dead}}, lockinfo.StateFree},
		"too few count": {
			protocol.Inspection{Nodes: []protocol.Node{counts, young, dead}}, lockinfo.StateUnknown},
		"too few answer": {
			protocol.Inspection{Nodes: []protocol.Node{counts, dead, dead}}, lockinfo.StateUnknown},
		"a hold that may be": {
			protocol.Inspection{Nodes: []protocol.Node{counts, dead, dead}, Holds: hold, HoldCount: 1},
			lockinfo.StateHeld},
		"a key of another type": {
			protocol.Inspection{Nodes: []protocol.Node{odd, odd, counts}, Foreign: odd.Inspection.Foreign},
			lockinfo.StateForeign},
		"such a key at one node": {
			protocol.Inspection{Nodes: []protocol.Node{odd, counts, counts}}, lockinfo.StateFree},
	} {
		t.Run(name, func(t *testing.T) {
			info := newInfo("x", c.in)
			if info.State() != c.want || len(info.Masters) != 3 {
				t.Fatalf("got %+v, want %s", info, c.want)
			}
			for i, m := range info.Masters {
				n := c.in.Nodes[i]
				if m.Node != n.Name || m.Counts != n.Counts || (m.Why != "") == n.Counts ||
					(m.Err != nil) != (n.Err != nil) || (m.Foreign != "") != (n.Inspection.Foreign != nil) {
					t.Errorf("got %+v of %+v", m, n)
				}
			}
		})
	}
}
