package history

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// checkResource finds updates that the resource lost although it compares tokens, writers and
// readers that it refused while they were trusted, before and after, and readers that saw a change
// while they were.
func checkResource(h *History) []Violation {
	var found []Violation
	holds := map[string]*Hold{}
	for _, hold := range h.Holds {
		holds[hold.ID+"/"+hold.Name] = hold
	}
	names := groupHolds(h.Holds)
	for _, op := range h.Ops {
		call := op.Call
		if call.Kind != Write && call.Kind != Read || op.Return == nil {
			continue
		}
		hold := holds[call.Hold+"/"+call.Name]
		wrong := op.misuse(hold, names[call.Name])
		if wrong == "" {
			continue
		}
		var records []Record
		if hold != nil && op.Return.Result != LostUpdate {
			records = hold.records()
		}
		found = append(found, violation(judge.Resource, call.Name, append(records, op.records()...),
			"%s (token %d) %s", call.Hold, call.Token, wrong))
	}
	return found
}

// misuse says what went wrong with a use of the resource; empty: nothing. hold is nil if there was
// none.
func (op *Op) misuse(hold *Hold, holds []*Hold) string {
	if hold != nil && hold.hasCompanion(holds, op.Return.At) {
		return ""
	}
	if op.Return.Result == LostUpdate {
		return "wrote, and was overwritten, tokens and all"
	}
	if hold == nil || op.Return.At >= hold.End {
		return ""
	}
	switch {
	case op.Return.Result == Refused:
		return "was refused while it was trusted"
	case op.Return.Result == Changed && !hold.hasWriter(holds):
		return "read two values while it was trusted"
	}
	return ""
}

// hasCompanion reports whether another hold of the same owner was asked for by the moment at: those
// do not exclude each other, so their tokens fence each other off.
func (hold *Hold) hasCompanion(holds []*Hold, at int64) bool {
	return hold.Owner != "" && slices.ContainsFunc(holds, func(other *Hold) bool {
		return other.Root != hold.Root && other.Owner == hold.Owner && other.Called < at
	})
}

// hasWriter reports whether another entry into the same lease may have written.
func (hold *Hold) hasWriter(holds []*Hold) bool {
	return slices.ContainsFunc(holds, func(other *Hold) bool {
		return other.Root == hold.Root && other.ID != hold.ID && !other.Shares
	})
}

// checkCalls finds calls that returned too late, or not at all although their process lived to the
// end, and those that returned what the workload did not expect.
func checkCalls(h *History) []Violation {
	const slack = 5 * time.Second
	var found []Violation
	for _, op := range h.Ops {
		call := op.Call
		if op.Return != nil && op.Return.Result == Failed {
			found = append(found, violation(judge.Failed, call.Name, op.records(),
				"%s returned an error that nothing explains", call.Kind))
		}
		at, killed := h.kills[call.Proc]
		switch {
		case op.Return != nil:
			at = op.Return.At
		case !killed:
			found = append(found, violation(judge.Stuck, call.Name, op.records(), "%s never returned", call.Kind))
			continue
		}
		late := time.Duration(at - call.At - call.Limit - h.stoppedTime(call.Proc, call.At, at))
		if call.Limit > 0 && late > slack {
			found = append(found, violation(judge.Stuck, call.Name, op.records(),
				"%s was not back %v after its limit of %v", call.Kind, late, time.Duration(call.Limit)))
		}
	}
	return found
}
