package history

import (
	"fmt"
	"slices"
	"time"
)

// checkResource finds updates that the resource lost although it compares tokens, writers and readers that it refused while
// they were trusted, before and after, and readers that saw a change while they were.
func checkResource(h *History) []Violation {
	var found []Violation
	holds := map[string]*Hold{}
	for _, hold := range h.Holds {
		holds[hold.ID+"/"+hold.Name] = hold
	}
	names := byName(h.Holds)
	for _, op := range h.Ops {
		if op.Call.Kind != Write && op.Call.Kind != Read || op.Return == nil {
			continue
		}
		hold := holds[op.Call.Hold+"/"+op.Call.Name]
		trusted := hold != nil && op.Return.At < hold.End
		report := func(what string, records []Record) {
			found = append(found, Violation{
				Rule: RuleResource, Name: op.Call.Name, Records: append(records, op.Call, *op.Return),
				Text: fmt.Sprintf("%s (token %d) %s", op.Call.Hold, op.Call.Token, what),
			})
		}
		switch {
		case op.Return.Result == LostUpdate && (hold == nil || !hold.companion(names[hold.Name], op.Return.At)):
			report("wrote, and was overwritten, tokens and all", nil)
		case op.Return.Result == Refused && trusted && !hold.companion(names[hold.Name], op.Return.At):
			report("was refused while it was trusted", hold.story())
		case op.Return.Result == Changed && trusted && !hold.companion(names[hold.Name], op.Return.At) && !hold.writes(names[hold.Name]):
			report("read two values while it was trusted", hold.story())
		}
	}
	return found
}

// companion tells whether another hold of the same owner was asked for by the moment at: those do not exclude each
// other, so their tokens fence each other off.
func (hold *Hold) companion(holds []*Hold, at int64) bool {
	return hold.Owner != "" && slices.ContainsFunc(holds, func(other *Hold) bool {
		return other.Root != hold.Root && other.Owner == hold.Owner && other.Called < at
	})
}

// writes tells whether another entry into the same lease may have written.
func (hold *Hold) writes(holds []*Hold) bool {
	return slices.ContainsFunc(holds, func(other *Hold) bool {
		return other.Root == hold.Root && other.ID != hold.ID && !other.Shares
	})
}

// checkCalls finds calls that returned too late, or not at all although their process lived to the end, and those that
// returned what the workload did not expect.
func checkCalls(h *History, slack time.Duration) []Violation {
	var found []Violation
	for _, op := range h.Ops {
		call := op.Call
		if op.Return != nil && op.Return.Result == Failed {
			found = append(found, Violation{
				Rule: RuleFailed, Name: call.Name, Records: []Record{call, *op.Return},
				Text: string(call.Kind) + " returned an error that nothing explains",
			})
		}
		at, killed := h.kills[call.Proc]
		records := []Record{call}
		switch {
		case op.Return != nil:
			at, records = op.Return.At, append(records, *op.Return)
		case !killed:
			found = append(found, Violation{
				Rule: RuleStuck, Name: call.Name, Records: records, Text: string(call.Kind) + " never returned",
			})
			continue
		}
		late := time.Duration(at - call.At - call.Limit - h.stopped(call.Proc, call.At, at))
		if call.Limit > 0 && late > slack {
			found = append(found, Violation{
				Rule: RuleStuck, Name: call.Name, Records: records,
				Text: fmt.Sprintf("%s was not back %v after its limit of %v", call.Kind, late, time.Duration(call.Limit)),
			})
		}
	}
	return found
}
