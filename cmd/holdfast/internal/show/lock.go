package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// LockColumns are the columns of a list of locks.
var LockColumns = []Column{
	{Title: "NAME", Flex: true}, {Title: "KIND"}, {Title: "STATE"}, {Title: "HOLDER", Flex: true}, {Title: "TOKEN", Right: true, Spare: true},
	{Title: "HELD", Right: true}, {Title: "LEFT", Right: true}, {Title: "WAIT", Right: true},
}

// LockRow is a row of a list of locks. It tells the hold that has held for longest.
func LockRow(info holdfast.LockInfo) []Cell {
	row := []Cell{
		{Text: Text(info.Name)}, {Text: kind(info)}, state(info), {}, {}, {}, {}, {Text: strconv.Itoa(info.Waiters)},
	}
	if info.Waiters > 0 {
		row[7].Style = Warning
	}
	switch info.State {
	case holdfast.StateForeign:
		row[3] = Cell{"none of ours", Faint}
		row[7].Text = ""
	case holdfast.StateSet, holdfast.StateOpen:
		row[3].Text = fmt.Sprintf("%d to count down", info.Count)
	}
	if h, ok := Oldest(info); ok {
		row[3].Text = holder(h)
		if info.Holders > 1 {
			row[3].Text += fmt.Sprintf(" +%d", info.Holders-1)
		}
		row[4].Text = strconv.FormatInt(h.Token, 10)
		row[5].Text = since(h.Since, info.At)
		row[6].Text = Age(h.Remaining)
	}
	return row
}

// Oldest is the hold that has held for longest. Remainders come last.
func Oldest(info holdfast.LockInfo) (holdfast.HoldInfo, bool) {
	if len(info.Holds) == 0 {
		return holdfast.HoldInfo{}, false
	}
	return slices.MinFunc(info.Holds, func(a, b holdfast.HoldInfo) int {
		if x, y := remains(a), remains(b); x != y {
			if x {
				return 1
			}
			return -1
		}
		return a.Since.Compare(b.Since)
	}), true
}

// remains reports whether a hold is a remainder.
func remains(h holdfast.HoldInfo) bool {
	return h.State != holdfast.HoldHeld && h.State != holdfast.HoldHandedOver
}

func kind(info holdfast.LockInfo) string {
	if info.Permits > 0 {
		return fmt.Sprintf("%s %d/%d", Lines(info.Kind), info.Taken, info.Permits)
	}
	return Lines(info.Kind)
}

// state is the state of a name, and what is the matter with its holds.
func state(info holdfast.LockInfo) Cell {
	text := Lines(string(info.State))
	if slices.ContainsFunc(info.Holds, func(h holdfast.HoldInfo) bool { return h.Late }) {
		return Cell{text + ", late", Warning}
	}
	switch info.State {
	case holdfast.StateFree, holdfast.StateForeign, holdfast.StateOpen:
		return Cell{text, Faint}
	case holdfast.StateRemainder:
		return Cell{text, Bad}
	case holdfast.StateMinHold, holdfast.StateHandedOver:
		return Cell{text, Warning}
	}
	return Cell{text, Good}
}

// holder names the process of a hold.
func holder(h holdfast.HoldInfo) string {
	if h.Label != "" {
		return Text(h.Label)
	}
	return process(h.Host, h.PID)
}

// process names a process by its host.
func process(host string, pid int) string {
	if host == "" {
		return "?"
	}
	return fmt.Sprintf("%s/%d", Text(host), pid)
}

// HoldColumns are the columns of a list of holds.
var HoldColumns = []Column{
	{Title: "HOLDER", Flex: true}, {Title: "HOST/PID", Flex: true}, {Title: "MODE"}, {Title: "TOKEN", Right: true}, {Title: "SINCE", Spare: true},
	{Title: "HELD", Right: true}, {Title: "LEFT", Right: true}, {Title: "RENEWED"}, {Title: "STATE"},
	{Title: "OWNER", Flex: true, Optional: true, Spare: true},
}

// HoldRow is a row of a list of holds.
func HoldRow(h holdfast.HoldInfo, info holdfast.LockInfo) []Cell {
	row := []Cell{
		{Text: holder(h)}, {Text: process(h.Host, h.PID)}, {Text: mode(h.Mode, h.Permits)}, {Text: strconv.FormatInt(h.Token, 10)}, {Text: "?"},
		{Text: since(h.Since, info.At)}, {Text: Age(h.Remaining)}, {Text: "?"}, holdState(h), {},
	}
	if h.Owner != "" {
		row[9] = Cell{Text(h.Owner), Faint}
	}
	if !h.Since.IsZero() {
		row[4].Text = h.Since.Local().Format("01-02 15:04:05")
	}
	switch {
	case h.Fixed:
		row[7].Text = "never"
	case !h.Renewed.IsZero():
		row[7].Text = since(h.Renewed, info.At) + " ago"
	}
	return row
}

func holdState(h holdfast.HoldInfo) Cell {
	text := Lines(string(h.State))
	switch {
	case h.Late:
		return Cell{text + ", late", Warning}
	case h.State == holdfast.HoldHeld:
		return Cell{text, Good}
	case h.By != "":
		return Cell{text + " by " + Text(h.By), Bad}
	}
	return Cell{text, Warning}
}

func mode(m holdfast.HoldMode, permits int64) string {
	switch {
	case m == holdfast.ModePermits && permits == 1:
		return "1 permit"
	case m == holdfast.ModePermits:
		return fmt.Sprintf("%d permits", permits)
	}
	return Lines(string(m))
}

// WaiterColumns are the columns of a queue.
var WaiterColumns = []Column{
	{Title: "PLACE", Right: true}, {Title: "WAITER"}, {Title: "LABEL", Flex: true}, {Title: "HOST/PID", Flex: true}, {Title: "MODE"},
	{Title: "WAITED", Right: true}, {Title: "ALIVE"}, {Title: "HOLDS MEANWHILE", Flex: true, Optional: true}, {Title: "OWNER", Flex: true, Optional: true, Spare: true},
}

// WaiterRow is a row of a queue.
func WaiterRow(w holdfast.WaiterInfo, info holdfast.LockInfo) []Cell {
	row := []Cell{
		{Text: strconv.Itoa(w.Place)}, {Text: Lines(w.ID)}, {Text: Text(w.Label)}, {Text: process(w.Host, w.PID)}, {Text: mode(w.Mode, w.Permits)},
		{Text: since(w.Since, info.At)}, {Text: Lines(string(w.Alive))}, {}, {},
	}
	if w.Owner != "" {
		row[8] = Cell{Text(w.Owner), Faint}
	}
	if w.Place == 0 {
		row[0] = Cell{"-", Faint}
	}
	if w.Kept {
		row[4].Text += ", kept"
	}
	if w.Alive == holdfast.AliveNo {
		row[6].Style = Warning
	}
	under := make([]string, len(w.Under))
	for i, name := range w.Under {
		under[i] = Text(name)
	}
	row[7].Text = strings.Join(under, ", ")
	return row
}

// MasterColumns are the columns of what the masters of a quorum say.
var MasterColumns = []Column{{Title: "MASTER"}, {Title: "COUNTS"}, {Title: "SAYS", Flex: true}}

// MasterRow is a row of what the masters of a quorum say.
func MasterRow(m holdfast.MasterInfo) []Cell {
	row := []Cell{{Text: Text(m.Node)}, {Text: "yes"}, {Text: "free"}}
	if !m.Counts {
		row[1] = Cell{"no", Warning}
	}
	var says []string
	for _, h := range m.Holds {
		cell := holdState(h)
		says = append(says, fmt.Sprintf("%s: %s, token %d, %s left", cell.Text, holder(h), h.Token, Age(h.Remaining)))
	}
	switch {
	case m.Err != nil:
		row[2] = Cell{Lines(m.Err.Error()), Bad}
	case m.Foreign != "":
		row[2] = Cell{"foreign: " + Lines(m.Foreign), Bad}
	case len(says) > 0:
		row[2].Text = strings.Join(says, "; ")
	}
	if m.Why != "" {
		row[2].Text += " (" + Lines(m.Why) + ")"
	}
	return row
}
