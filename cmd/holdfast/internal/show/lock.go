package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// LockColumns are the columns of a list of locks.
var LockColumns = []Column{
	{Title: "NAME", Flex: true}, {Title: "KIND", Spare: true}, {Title: "STATE"}, {Title: "HOLDER", Flex: true},
	{Title: "TOKEN", Right: true, Spare: true},
	{Title: "HELD", Right: true}, {Title: "LEFT", Right: true}, {Title: "WAIT", Right: true},
	{Title: "LONGEST", Right: true, Optional: true},
}

// LockRow is a row of a list of locks. It shows its Holder.
func LockRow(info lockinfo.Info) []Cell {
	var holder, token, held, left, longest Cell
	waiters := Cell{Text: strconv.Itoa(info.Waiters)}
	if info.Waiters > 0 {
		waiters.Style = Warning
	}
	if !info.WaitingSince.IsZero() {
		longest.Text = Age(info.LongestWait())
	}
	switch info.State() {
	case lockinfo.StateForeign:
		holder, waiters.Text = Cell{"none of ours", Faint}, ""
	case lockinfo.StateSet, lockinfo.StateOpen:
		holder.Text = fmt.Sprintf("%d to count down", info.Count)
	}
	if h, ok := info.Holder(); ok {
		holder.Text = holderProcess(h)
		if info.Holders > 1 {
			holder.Text += fmt.Sprintf(" +%d", info.Holders-1)
		}
		token.Text, held.Text, left.Text = tokenText(h), ageText(h.Since, info.At), Age(h.Remaining)
	}
	return []Cell{
		{Text: Text(info.Name)}, {Text: kind(info)}, stateCell(info), holder, token, held, left, waiters, longest,
	}
}

func tokenText(h lockinfo.Hold) string { return strconv.FormatInt(h.Token, 10) }

// WaitsColumn has what the holders of a name wait for themselves. It is empty at a root.
var WaitsColumn = Column{Title: "HOLDER WAITS FOR", Flex: true, Optional: true}

// WaitsCell names what holders of a name wait for themselves, as lockinfo.Waits tells it.
func WaitsCell(name string, holds []lockinfo.Hold, waits func(string, lockinfo.Hold) []lockinfo.Wait) Cell {
	var out []string
	for _, h := range holds {
		for _, w := range waits(name, h) {
			text := Text(w.Name)
			if w.Perhaps {
				text += "?"
			}
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return Cell{Text: strings.Join(out, ", ")}
}

func kind(info lockinfo.Info) string {
	if info.Kind == lockinfo.KindSemaphore {
		return fmt.Sprintf("%s %d/%d", Lines(string(info.Kind)), info.Taken, info.Permits)
	}
	return Lines(string(info.Kind))
}

// stateCell is the state of a name, and what is the matter with its holds.
func stateCell(info lockinfo.Info) Cell {
	text := Lines(string(info.State()))
	if info.Late() {
		return Cell{text + ", late", Warning}
	}
	switch info.State() {
	case lockinfo.StateFree, lockinfo.StateForeign, lockinfo.StateOpen:
		return Cell{text, Faint}
	case lockinfo.StateBroken:
		return Cell{text, Bad}
	case lockinfo.StateMinHold, lockinfo.StateHandedOver:
		return Cell{text, Warning}
	}
	return Cell{text, Good}
}

func holderProcess(h lockinfo.Hold) string {
	if h.Label != "" {
		return Text(h.Label)
	}
	return processName(h.Host, h.PID)
}

// TicketLabel begins the label of a hold that holdfast acquire left to a ticket.
const TicketLabel = "ticket of "

// IsTicket reports whether a ticket has the hold, as far as that is known, and no process.
func IsTicket(h lockinfo.Hold) bool { return h.Ticket || strings.HasPrefix(h.Label, TicketLabel) }

// ProcessCell names the process of a name's Holder, unless its label does.
func ProcessCell(info lockinfo.Info) Cell {
	h, ok := info.Holder()
	process := holdProcess(h)
	if !ok || process == "?" || strings.HasSuffix(h.Label, process) || IsTicket(h) && !h.Ticket {
		return Cell{}
	}
	return Cell{Text: process}
}

// holdProcess names the process of a hold, or says that a ticket has it.
func holdProcess(h lockinfo.Hold) string {
	if h.Ticket {
		return "a ticket"
	}
	return processName(h.Host, h.PID)
}

func processName(host string, pid int) string {
	if host == "" {
		return "?"
	}
	return fmt.Sprintf("%s/%d", Text(host), pid)
}

// HoldColumns are the columns of a list of holds.
var HoldColumns = []Column{
	{Title: "HOLDER", Flex: true}, {Title: "HOST/PID", Flex: true}, {Title: "MODE"}, {Title: "TOKEN", Right: true},
	{Title: "SINCE", Spare: true}, {Title: "HELD", Right: true}, {Title: "LEFT", Right: true}, {Title: "RENEWED"},
	{Title: "STATE"}, {Title: "OWNER", Flex: true, Optional: true, Spare: true},
}

// HoldRow is a row of a list of holds.
func HoldRow(h lockinfo.Hold, info lockinfo.Info) []Cell {
	renewed := "?"
	switch {
	case h.Fixed:
		renewed = "never"
	case !h.Renewed.IsZero():
		renewed = ageText(h.Renewed, info.At) + " ago"
	}
	return []Cell{
		{Text: holderProcess(h)}, {Text: holdProcess(h)}, {Text: mode(h.Mode, h.Permits)}, {Text: tokenText(h)},
		sinceCell(h), {Text: ageText(h.Since, info.At)}, {Text: Age(h.Remaining)}, {Text: renewed},
		holdState(h), ownerCell(h.Owner),
	}
}

func sinceCell(h lockinfo.Hold) Cell {
	if h.Since.IsZero() {
		return Cell{Text: "?"}
	}
	return Cell{Text: h.Since.Local().Format("01-02 15:04:05")}
}

func ownerCell(owner string) Cell {
	if owner == "" {
		return Cell{}
	}
	return Cell{ownerText(owner), Faint}
}

// ownerText shows an owner. That of a process which takes part in shards is long, and the beginning
// of its name is enough to tell it from others.
func ownerText(owner string) string {
	if words := strings.Fields(owner); len(words) == 6 && words[0] == "shard" {
		return Text(fmt.Sprintf("member %.6s", words[3]))
	}
	return Text(owner)
}

// ShardColumns are the columns of a list of shards.
var ShardColumns = []Column{
	{Title: "SHARD", Right: true}, {Title: "STATE"}, {Title: "HOLDER", Flex: true},
	{Title: "HOST/PID", Flex: true, Optional: true}, {Title: "TOKEN", Right: true}, {Title: "SINCE", Spare: true},
}

// ShardRow is a row of a list of shards. A shard that nobody holds has no token.
func ShardRow(shard int, h lockinfo.Hold) []Cell {
	number := Cell{Text: strconv.Itoa(shard)}
	if h.Token == 0 {
		return []Cell{number, {"free", Warning}, {}, {}, {}, {}}
	}
	holder, process := holderProcess(h), holdProcess(h)
	if strings.HasSuffix(holder, process) {
		process = ""
	}
	return []Cell{number, holdState(h), {Text: holder}, {Text: process}, {Text: tokenText(h)}, sinceCell(h)}
}

func holdState(h lockinfo.Hold) Cell {
	text := Lines(string(h.State))
	switch {
	case h.Late:
		return Cell{text + ", late", Warning}
	case h.State == lockinfo.StateHeld && h.Retains:
		return Cell{text + ", perhaps unused", Good}
	case h.State == lockinfo.StateHeld:
		return Cell{text, Good}
	case h.By != "":
		return Cell{text + " by " + Text(h.By), Bad}
	}
	return Cell{text, Warning}
}

func mode(m lockinfo.Mode, permits int64) string {
	switch {
	case m == lockinfo.ModePermits && permits == 1:
		return "1 permit"
	case m == lockinfo.ModePermits:
		return fmt.Sprintf("%d permits", permits)
	}
	return Lines(string(m))
}

// WaiterColumns are the columns of a queue.
var WaiterColumns = []Column{
	{Title: "PLACE", Right: true}, {Title: "WAITER"}, {Title: "LABEL", Flex: true}, {Title: "HOST/PID", Flex: true},
	{Title: "MODE"}, {Title: "WAITED", Right: true}, {Title: "ALIVE"},
	{Title: "HOLDS MEANWHILE", Flex: true, Optional: true}, {Title: "OWNER", Flex: true, Optional: true, Spare: true},
}

// WaiterRow is a row of a queue.
func WaiterRow(w lockinfo.Waiter, info lockinfo.Info) []Cell {
	place, alive := Cell{Text: strconv.Itoa(w.Place)}, Cell{Text: Lines(string(w.Alive))}
	if w.Place == 0 {
		place = Cell{"-", Faint}
	}
	if w.Alive == lockinfo.AliveNo {
		alive.Style = Warning
	}
	mode := mode(w.Mode, w.Permits)
	if w.Kept {
		mode += ", kept"
	}
	under := make([]string, len(w.Under))
	for i, name := range w.Under {
		under[i] = Text(name)
	}
	return []Cell{
		place, {Text: Lines(w.ID)}, {Text: Text(w.Label)}, {Text: processName(w.Host, w.PID)}, {Text: mode},
		{Text: ageText(w.Since, info.At)}, alive, {Text: strings.Join(under, ", ")}, ownerCell(w.Owner),
	}
}

// MasterColumns are the columns of what the masters of a quorum say.
var MasterColumns = []Column{{Title: "MASTER"}, {Title: "COUNTS"}, {Title: "SAYS", Flex: true}}

// MasterRow is a row of what the masters of a quorum say.
func MasterRow(m lockinfo.Master) []Cell {
	row := []Cell{{Text: Text(m.Node)}, {Text: "yes"}, {Text: "free"}}
	if !m.Counts {
		row[1] = Cell{"no", Warning}
	}
	var says []string
	for _, h := range m.Holds {
		cell := holdState(h)
		says = append(says, fmt.Sprintf("%s: %s, token %d, %s left", cell.Text, holderProcess(h), h.Token,
			Age(h.Remaining)))
	}
	switch {
	case m.Err != nil:
		row[2] = Cell{Lines(m.Why), Bad}
	case m.Foreign != "":
		row[2] = Cell{"foreign: " + Lines(m.Foreign), Bad}
	case len(says) > 0:
		row[2].Text = strings.Join(says, "; ")
	}
	if m.Err == nil && m.Why != "" {
		row[2].Text += " (" + Lines(m.Why) + ")"
	}
	return row
}
