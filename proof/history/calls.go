package history

import (
	"fmt"
	"time"
)

// checkResource finds updates that the resource lost although it compares tokens, and writers that it refused while
// they were trusted, before and after.
func checkResource(h *History) []Violation {
	var found []Violation
	holds := map[string]*Hold{}
	for _, hold := range h.Holds {
		holds[hold.ID] = hold
	}
	for _, op := range h.Ops {
		if op.Call.Kind != Write || op.Return == nil {
			continue
		}
		hold := holds[op.Call.Hold]
		switch {
		case op.Return.Result == LostUpdate:
			found = append(found, Violation{
				Rule: RuleResource, Name: op.Call.Name, Records: []Record{op.Call, *op.Return},
				Text: fmt.Sprintf("a write by %s was overwritten, tokens and all", op.Call.Hold),
			})
		case op.Return.Result == Refused && hold != nil && op.Return.At < hold.End:
			found = append(found, Violation{
				Rule: RuleResource, Name: op.Call.Name, Records: append(hold.story(), op.Call, *op.Return),
				Text: fmt.Sprintf("%s (token %d) was refused while it was trusted", hold.ID, hold.Token),
			})
		}
	}
	return found
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
