package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// View implements tea.Model.
func (m *Model) View() tea.View {
	lines := m.head()
	foot := m.foot()
	room := max(m.height-len(lines)-len(foot), 1)
	var body []string
	if m.mode == detailing || m.mode == asking && m.asked.then == detailing {
		body = m.detailBody(room)
	} else {
		body = m.listBody(room)
	}
	for len(body) < room {
		body = append(body, "")
	}
	lines = append(append(lines, body[:room]...), foot...)
	lines = lines[:min(len(lines), m.height)]
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "…")
	}
	return tea.View{Content: strings.Join(lines, "\n"), AltScreen: true}
}

// head are the lines above the list: what is looked at, and how that goes.
func (m *Model) head() []string {
	contended, late, longest := 0, 0, time.Duration(0)
	for _, info := range m.now.Locks {
		longest = max(longest, info.LongestWait())
		if info.Waiters > 0 {
			contended++
		}
		if slices.ContainsFunc(info.Holds, func(h lockinfo.Hold) bool { return h.Late }) {
			late++
		}
	}
	first := fmt.Sprintf("holdfast top  %s  %d names, %d contended, %d late", m.now.At.Local().Format(time.TimeOnly),
		m.now.Total, contended, late)
	if longest > 0 {
		first += ", longest wait " + show.Age(longest)
	}
	if m.now.Total > len(m.now.Locks) {
		first += fmt.Sprintf(", the first %d by %s", len(m.now.Locks), m.order)
	}
	first += "  " + show.Text(m.title)
	second := show.Faint.Styled(fmt.Sprintf("looking every second (it took %s): what lasts for less may not be seen",
		tookText(m.now.Took)))
	switch {
	case m.recording != nil:
		second = fmt.Sprintf("capture, snapshot %d of %d, of %s", m.at+1, m.recording.Len(),
			m.now.At.Local().Format(time.DateTime))
		if m.now.Err != nil {
			second = show.Bad.Styled(second + ": " + oneLine(m.now.Err.Error()))
		} else {
			second = show.Faint.Styled(second)
		}
	case m.away != "":
		second = show.Bad.Styled(
			fmt.Sprintf("away since %s: %s", m.since.Local().Format(time.TimeOnly), oneLine(m.away)))
	}
	return []string{show.Heading.Styled(first), second, ""}
}

func tookText(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return show.Age(d)
}

// oneLine is a shown text without ends of lines.
func oneLine(text string) string { return strings.ReplaceAll(show.Lines(text), "\n", "; ") }

// foot are the lines below: a question or what became of the last action, and the keys.
func (m *Model) foot() []string {
	line := show.Warning.Styled(oneLine(m.message))
	switch m.mode {
	case asking:
		h := m.asked.hold
		label, name := ansi.Truncate(show.Text(h.Label), 30, "…"), ansi.Truncate(show.Text(m.asked.name), 30, "…")
		return []string{
			show.Warning.Styled(fmt.Sprintf("Break the hold of %s on %s, token %d?", label, name, h.Token)),
			"y breaks it: others get in when it has stopped. Any other key does nothing.",
		}
	case filtering:
		return []string{"filter: " + show.Lines(m.filter) + "_",
			show.Faint.Styled("a part of the name or of a holder; enter keeps it, esc drops it")}
	case detailing:
		keys := "esc back  ↑↓ scroll  tab next hold  b break  q quit"
		if m.recording != nil {
			keys = "esc back  ↑↓ scroll  ←→ snapshot  q quit"
		}
		return []string{line, show.Faint.Styled(keys)}
	}
	if m.filter != "" && m.message == "" {
		line = fmt.Sprintf("filter: %s, %d names (esc drops it)", show.Text(m.filter), len(m.locks))
	}
	keys := "↑↓ choose  enter more  o oldest  c contended  w waits  n name  / filter  b break  q quit"
	if m.recording != nil {
		keys = "↑↓ choose  enter more  o oldest  c contended  w waits  n name  / filter  ←→ snapshot  []: by 60  q quit"
	}
	return []string{line, show.Faint.Styled(keys)}
}

var listColumns = slices.Concat([]show.Column{{Title: "  "}}, show.LockColumns, []show.Column{show.WaitsColumn})

// listBody is the list, with the chosen name in view.
func (m *Model) listBody(room int) []string {
	if len(m.locks) == 0 {
		return []string{show.Faint.Styled("no such name is held or waited for")}
	}
	rows := max(room-1, 1) // without the titles
	m.top = min(m.top, m.row)
	m.top = max(m.top, m.row-rows+1, 0)
	shown := m.locks[m.top:min(m.top+rows, len(m.locks))]
	var out strings.Builder
	table := &show.Table{Out: &out, Width: m.width, Colors: true, Columns: listColumns}
	for i, info := range shown {
		mark := " " + m.changes[info.Name]
		if m.top+i == m.row {
			mark = ">" + m.changes[info.Name]
		}
		_ = table.Row(slices.Concat([]show.Cell{{Text: mark}}, show.LockRow(info),
			[]show.Cell{show.WaitsCell(info.Name, info.Holds, m.waits)})...)
	}
	_ = table.Flush()
	lines := splitLines(out.String())
	lines[0] = m.sortedTitle(lines[0])
	chosen := m.row - m.top + 1
	lines[chosen] = ansi.NewStyle().Reverse(true).Styled(ansi.Strip(lines[chosen]))
	return lines
}

// sortedTitle marks the column that the list is sorted by.
func (m *Model) sortedTitle(line string) string {
	title := map[snapshot.Order]string{snapshot.ByAge: "HELD", snapshot.ByWaiters: "WAIT",
		snapshot.ByWait: "LONGEST", snapshot.ByName: "NAME"}[m.order]
	return strings.Replace(line, title, ansi.NewStyle().Underline(true).Styled(title), 1)
}

func splitLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// detailLines is all that is known of the chosen name.
func (m *Model) detailLines() []string {
	var out strings.Builder
	page := show.Page{Out: &out, Width: m.width, Colors: true}
	_ = page.Detail(m.detail)
	if m.why.Waits() {
		out.WriteString("\nwhy it is waited for, as far as the names in the list tell:\n")
		_ = page.Chain(m.why)
	}
	if len(m.detail.Queue) > 0 {
		out.WriteByte('\n')
		table := page.Table(show.WaiterColumns)
		for _, w := range m.detail.Queue {
			_ = table.Row(show.WaiterRow(w, m.detail)...)
		}
		_ = table.Flush()
		if more := m.detail.Waiters - len(m.detail.Queue); more > 0 {
			fmt.Fprintf(&out, "and %d more: holdfast inspect --all shows them\n", more)
		}
	}
	return splitLines(out.String())
}

func (m *Model) detailBody(room int) []string {
	var lines []string
	if m.gone != "" {
		lines = append(lines, show.Bad.Styled("as of "+m.detail.At.Local().Format(time.TimeOnly)+": "+oneLine(m.gone)))
	}
	if len(m.detail.Holds) > 1 && m.server != nil {
		h := m.detail.Holds[m.hold]
		lines = append(lines, fmt.Sprintf("chosen: hold %d of %d, token %d, of %s", m.hold+1, len(m.detail.Holds),
			h.Token, show.Text(h.Label)))
	}
	lines = append(lines, m.detailLines()...)
	from := min(m.scroll, max(len(lines)-room, 0))
	return lines[from:]
}
