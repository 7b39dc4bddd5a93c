package history

import (
	"fmt"
	"strings"
	"time"
)

// An Event says what a Record tells of.
type Event string

// The events. Call and Return belong to an operation, Trust and Lost to a hold, the others to a process.
const (
	Call   Event = "call"
	Return Event = "return"
	Trust  Event = "trust" // the library said that the hold is good
	Lost   Event = "lost"  // the library said that it is not
	Close  Event = "close" // of the client: its leases are given back
	Kill   Event = "kill"
	Stop   Event = "stop"
	Cont   Event = "cont"
	Mute   Event = "mute" // the network of a process fell silent; Text says for how long
)

// A Kind is an operation.
type Kind string

// The operations. Write is one on the resource that checks tokens.
const (
	Lock    Kind = "lock"
	TryLock Kind = "try"
	Release Kind = "release"
	Write   Kind = "write"
)

// A Result is how an operation ended.
type Result string

// The results. A write that the resource took because its token was good, while the value had changed since the
// writer read it, is LostUpdate.
const (
	OK          Result = "ok"
	Held        Result = "held"
	TimedOut    Result = "timeout"
	Canceled    Result = "canceled"
	LeaseLost   Result = "lost"
	NotHeld     Result = "not held"
	Uncertain   Result = "uncertain"
	Unavailable Result = "unavailable"
	Refused     Result = "refused"
	LostUpdate  Result = "lost update"
	Overdue     Result = "overdue" // of Trust: Err was nil although Until was over
	Failed      Result = "failed"  // an error, or of Lost a cause, that the workload did not expect; Text tells
)

// A Record is a line of a history. Times are readings of Now.
type Record struct {
	At     int64  `json:"at"`
	Proc   string `json:"p"`
	Event  Event  `json:"ev"`
	Op     int64  `json:"op,omitempty"` // within Proc, from 1; joins Call and Return
	Kind   Kind   `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
	Hold   string `json:"hold,omitempty"` // ID of the hold meant; for a lock, the one it makes if it wins
	Root   string `json:"root,omitempty"` // ID of the hold whose context was given: reentry
	Token  int64  `json:"token,omitempty"`
	Until  int64  `json:"until,omitempty"` // trust end
	Limit  int64  `json:"limit,omitempty"` // of a call: when it should return, 0: not bounded
	Result Result `json:"res,omitempty"`
	Text   string `json:"text,omitempty"`
}

// Format writes the record for people, with times in milliseconds since origin.
func (r Record) Format(origin int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12s  %-6s %-6s", millis(r.At-origin), r.Proc, r.Event)
	for _, f := range []struct{ key, value string }{
		{"", string(r.Kind)}, {"name", r.Name}, {"hold", r.Hold}, {"under", r.Root}, {"", string(r.Result)}, {"", r.Text},
	} {
		switch {
		case f.value == "":
		case f.key == "":
			b.WriteString(" " + f.value)
		default:
			b.WriteString(" " + f.key + "=" + f.value)
		}
	}
	if r.Token != 0 {
		fmt.Fprintf(&b, " token=%d", r.Token)
	}
	if r.Until != 0 {
		fmt.Fprintf(&b, " until=%s", millis(r.Until-origin))
	}
	return b.String()
}

func millis(ns int64) string {
	return fmt.Sprintf("%.3fms", float64(ns)/float64(time.Millisecond))
}
