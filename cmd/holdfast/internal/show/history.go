package show

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// EntryColumns are the columns of a history.
var EntryColumns = []Column{
	{Title: "AT"}, {Title: "EVENT"}, {Title: "LABEL", Flex: true}, {Title: "PROCESS", Flex: true, Spare: true},
	{Title: "TOKEN", Right: true}, {Title: "WAITED", Right: true, Optional: true},
	{Title: "HELD", Right: true, Optional: true}, {Title: "WHY", Optional: true, Flex: true},
	{Title: "OWNER", Optional: true, Flex: true, Spare: true},
}

// EntryRow is a row of a history.
func EntryRow(e lockinfo.Entry) []Cell {
	row := []Cell{
		{Text: e.At.Local().Format(time.DateOnly + " 15:04:05.000")}, {Text: Lines(string(e.Kind))},
		{Text: Text(e.Label)}, {Text: processName(e.Host, e.PID)}, {}, {}, {}, {Text: whyText(e)}, {},
	}
	switch e.Kind {
	case lockinfo.EntryLost, lockinfo.EntryBroken:
		row[1].Style = Bad
	case lockinfo.EntryGaveUp:
		row[1].Style = Warning
	}
	if e.Token != 0 {
		row[4].Text = strconv.FormatInt(e.Token, 10)
	}
	if e.Waited > 0 {
		row[5].Text = Age(e.Waited)
	}
	if e.End() || e.Kind == lockinfo.EntryDetached {
		row[6].Text = Age(e.Held)
	}
	if e.Owner != "" {
		row[8].Text = ownerText(e.Owner)
	}
	return row
}

// whyText says why a lease or a wait ended, by whom, and for whom the caller waited.
func whyText(e lockinfo.Entry) string {
	var parts []string
	if e.Reason != "" {
		parts = append(parts, Lines(e.Reason))
	}
	if e.By != "" {
		parts = append(parts, "by "+Text(e.By))
	}
	if e.Holder != "" {
		parts = append(parts, "behind "+Text(e.Holder))
	}
	return strings.Join(parts, " ")
}
