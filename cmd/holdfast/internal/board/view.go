package board

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// cell is the width of a worker on the board.
const cell = 24

// Colours, by the numbers of the terminal's own sixteen.
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
	amber = "33"
)

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	return v
}

// lines is the board, no higher and no wider than the terminal.
func (m *model) lines() []string {
	head := []string{
		paint(bold, m.cut(fmt.Sprintf("The noon lottery: %d processes, one lock, on %s", m.facts.Workers, m.facts.Server))),
		m.cut(fmt.Sprintf("round %d of %d  %s", m.round, m.facts.Rounds, strings.Join(m.marks, ""))),
		paint(faint, m.cut("✓ drawn   S its holder was stopped   M held too long   K was killed")),
		"",
		m.holding(),
		m.bar(),
		"",
	}
	head = append(head, m.grid()...)
	head = append(head, "")
	foot := paint(faint, m.cut("ctrl-c or q leaves"))
	room := max(m.height-len(head)-1, 0)
	told := m.told[max(len(m.told)-room, 0):]
	for _, line := range told {
		head = append(head, m.cut(line))
	}
	for len(head) < m.height-1 {
		head = append(head, "")
	}
	return append(head[:max(min(len(head), m.height-1), 0)], foot)
}

// holding says who holds, and with which token.
func (m *model) holding() string {
	if m.holder == 0 {
		return paint(faint, m.cut("nobody holds the lock"))
	}
	does := m.workers[m.holder-1]
	text := m.cut(fmt.Sprintf("worker %d holds the lock, token %d", m.holder, m.token))
	if does == killed || does == stopped {
		text = m.cut(fmt.Sprintf("worker %d is %s; its hold is not over yet", m.holder, does))
	}
	return paint(green, text)
}

// bar is the time that the holder's lease has left.
func (m *model) bar() string {
	if m.holder == 0 || m.until.IsZero() {
		return ""
	}
	left := max(m.until.Sub(m.now), 0)
	width := max(min(m.width-30, 100), 10)
	full := min(int(int64(width)*int64(left)/int64(m.facts.TTL)), width)
	colour := green
	switch {
	case left < m.facts.TTL/3:
		colour = red
	case left < m.facts.TTL*2/3-m.facts.TTL/50:
		colour = amber
	}
	return paint(colour, strings.Repeat("█", full)) + paint(faint, strings.Repeat("░", width-full)) +
		fmt.Sprintf(" %.1f s of %v", left.Seconds(), m.facts.TTL.Round(time.Millisecond))
}

// grid is what each worker does, in as many columns as fit.
func (m *model) grid() []string {
	columns := max(m.width/cell, 1)
	rows := (len(m.workers) + columns - 1) / columns
	lines := make([]string, rows)
	for i, does := range m.workers {
		text := fmt.Sprintf("%2d %-*.*s", i+1, cell-4, cell-4, does)
		lines[i%rows] += paint(colours[does], text) + " "
	}
	return lines
}

var colours = map[string]string{holds: green, dawdles: amber, killed: red, stopped: amber, turned: faint}

// cut keeps a line within the terminal.
func (m *model) cut(text string) string {
	if runes := []rune(text); len(runes) > m.width {
		return string(runes[:m.width])
	}
	return text
}

func paint(colour, text string) string {
	if colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
