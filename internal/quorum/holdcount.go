package quorum

import (
	"cmp"
	"slices"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A holdCount counts what the nodes say of the holds of one name. Their clocks differ: each
// time is counted from what the node's own clock showed.
type holdCount struct {
	need      int
	uncounted int // nodes that do not count, or did not answer
	foreign   int
	foreigner *protocol.Foreign // what a node said first
	of        map[protocol.ID][]nodeHold
	kinds     map[protocol.Kind]int
	cut       []int // how many holds there are at nodes that did not tell all
}

// A nodeHold is a hold, or what remains of it, at one node that counts.
type nodeHold struct {
	hold   protocol.Hold
	server int64 // what the node's clock showed, microseconds
}

func (s nodeHold) remaining() int64 { return s.hold.Until - s.server }

func (v *holdCount) add(n *protocol.Node) {
	in := &n.Inspection
	if in.Foreign != nil {
		if v.foreign++; v.foreigner == nil {
			v.foreigner = in.Foreign
		}
	}
	if n.Err != nil || !n.Counts {
		return
	}
	v.uncounted--
	if in.Foreign != nil {
		return
	}
	if v.kinds == nil {
		v.kinds = map[protocol.Kind]int{}
	}
	if in.Kind != 0 {
		v.kinds[in.Kind]++
	}
	if in.HoldCount > len(in.Holds) {
		v.cut = append(v.cut, in.HoldCount)
	}
	for _, h := range in.Holds {
		v.of[h.ID] = append(v.of[h.ID], nodeHold{h, in.Server})
	}
}

// hold returns what a majority agrees on, at a time of the verdict. It ends when fewer than a
// majority keep it. It is a hold as long as a majority can prolong it, with the nodes that said
// nothing.
func (v *holdCount) hold(of []nodeHold, server int64) protocol.Hold {
	slices.SortFunc(of, func(a, b nodeHold) int { return cmp.Compare(b.remaining(), a.remaining()) })
	at := of[min(v.need, len(of))-1]
	held, remains := 0, (*protocol.Hold)(nil)
	for i := range of {
		if of[i].hold.State == protocol.HoldTaken {
			held++
		} else {
			remains = &of[i].hold
		}
	}
	out := at.hold
	out.Until = server + at.remaining()
	out.Token, out.Block = v.tokens(of)
	out.Since = sinceOf(out.Token, server)
	if remains == nil || held > 0 && held+v.uncounted >= v.need {
		out.State, out.By, out.Renewed = protocol.HoldTaken, "", min(out.Until-out.TTL.Microseconds(), server)
	} else {
		out.State, out.By, out.Renewed = remains.State, remains.By, 0
	}
	return out
}

// tokens are those that a majority accepted, or may have. None are told if there are none.
func (v *holdCount) tokens(of []nodeHold) (first, block int64) {
	for _, s := range of {
		same := 0
		for _, other := range of {
			if other.hold.Token == s.hold.Token && other.hold.Block == s.hold.Block {
				same++
			}
		}
		if same+v.uncounted >= v.need && s.hold.Token > first {
			first, block = s.hold.Token, s.hold.Block
		}
	}
	return first, block
}

// hiddenCount returns how many holds a majority knows of at least, where nodes did not tell all.
func (v *holdCount) hiddenCount() int {
	if len(v.cut) < v.need {
		return 0
	}
	slices.Sort(v.cut)
	return v.cut[len(v.cut)-v.need]
}

// kind returns the one that most nodes name.
func (v *holdCount) kind() (kind protocol.Kind) {
	for k, n := range v.kinds {
		if most := v.kinds[kind]; n > most || n == most && k < kind {
			kind = k
		}
	}
	return kind
}

// compareHolds compares holds: the oldest first, and last those without a token.
func compareHolds(a, b protocol.Hold) int {
	return cmp.Or(cmp.Compare(uint64(a.Token)-1, uint64(b.Token)-1), cmp.Compare(a.ID, b.ID))
}
