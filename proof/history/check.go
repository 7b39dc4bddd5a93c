package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Violation is one rule broken once.
type Violation struct {
	Rule    string
	Name    string // of the lock
	Text    string // what happened, in a sentence
	Records []Record
	origin  int64
}

// String returns the violation for people: the sentence, then the records that show it, in the
// order of time.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %q: %s", v.Rule, v.Name, v.Text)
	for _, r := range v.Records {
		b.WriteString("\n  " + r.Format(v.origin))
	}
	return b.String()
}

func violation(rule, name string, records []Record, format string, args ...any) Violation {
	return Violation{Rule: rule, Name: name, Records: records, Text: fmt.Sprintf(format, args...)}
}

// Check tells every violation of the history, in the order of time. One may wait as long as idle
// for what nobody holds, and nothing explains.
func Check(h *History, idle time.Duration) []Violation {
	var found []Violation
	asked := h.OpsOf(Leader)
	for name, holds := range groupHolds(h.Holds) {
		found = append(found, checkOverlap(holds)...)
		found = append(found, checkPermits(holds)...)
		found = append(found, checkMin(holds)...)
		found = append(found, checkLeaders(holds, asked[name])...)
		found = append(found, checkTokens(holds)...)
		found = append(found, h.checkReleases(holds)...)
		found = append(found, checkTrust(holds)...)
	}
	found = append(found, checkLatches(h)...)
	found = append(found, checkOrder(h)...)
	found = append(found, checkIdle(h, idle)...)
	found = append(found, checkResource(h)...)
	found = append(found, checkCalls(h)...)
	for i := range found {
		v := &found[i]
		slices.SortStableFunc(v.Records, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
		v.origin = h.Records[0].At
	}
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Compare(a.completedAt(), b.completedAt()) })
	return found
}

func (v Violation) completedAt() int64 {
	if len(v.Records) == 0 {
		return 0
	}
	return v.Records[len(v.Records)-1].At
}

// groupHolds parts holds by the name of their lock; each part keeps the order.
func groupHolds(holds []*Hold) map[string][]*Hold {
	parts := map[string][]*Hold{}
	for _, hold := range holds {
		parts[hold.Name] = append(parts[hold.Name], hold)
	}
	return parts
}

// OpsOf parts the operations of a kind by name; each part keeps the order.
func (h *History) OpsOf(kind Kind) map[string][]*Op {
	parts := map[string][]*Op{}
	for _, op := range h.Ops {
		if op.Call.Kind == kind {
			parts[op.Call.Name] = append(parts[op.Call.Name], op)
		}
	}
	return parts
}

// records returns what a violation shows of a hold.
func (hold *Hold) records() []Record {
	records := []Record{hold.Lock}
	if n := len(hold.Trusts); n > 0 {
		records = append(records, hold.Trusts[n-1])
	}
	if hold.Notice != nil {
		records = append(records, *hold.Notice)
	}
	for _, op := range hold.Releases {
		records = append(records, op.records()...)
	}
	if hold.Cause == Kill {
		records = append(records, Record{At: hold.End, Proc: hold.Proc, Event: Kill, Hold: hold.ID})
	}
	return records
}

func (op *Op) records() []Record {
	if op.Return == nil {
		return []Record{op.Call}
	}
	return []Record{op.Call, *op.Return}
}

func recordsOf(holds ...*Hold) []Record {
	var records []Record
	for _, hold := range holds {
		records = append(records, hold.records()...)
	}
	return records
}
