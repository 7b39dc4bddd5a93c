package show

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// firstRows is how many rows decide how wide the columns are.
const firstRows = 1000

// A column that gives way to others stays wide enough to be read while there are columns to spare,
// and never gets narrower than the least.
const (
	fairFlex  = 20
	leastFlex = 8
)

// A Column is a column of a table.
type Column struct {
	Title    string
	Right    bool // aligned at the right
	Flex     bool // gives way if the terminal is too narrow
	Optional bool // left out if none of the first rows has it
	Spare    bool // left out if the terminal is too narrow, the last one first
}

// A Cell is one field of a table. Its text is shown: made by Text or a text of the program.
type Cell struct {
	Text  string
	Style Style
}

// A Table writes rows in columns. It needs no more memory than its first rows, which decide how
// wide the columns are: a later row with a wider text moves what stands behind it.
type Table struct {
	Out     io.Writer
	Width   int // of the terminal; 0: there is none, and nothing is cut
	Colors  bool
	Columns []Column

	first   [][]Cell
	flowing bool
	widths  []int
	err     error
}

// Row adds a row. An error of the writer is told by Flush, and by Row from then on.
func (t *Table) Row(cells ...Cell) error {
	if !t.flowing {
		t.first = append(t.first, cells)
		if len(t.first) == firstRows {
			return t.Flush()
		}
		return t.err
	}
	t.write(cells)
	return t.err
}

// Sort sorts the rows that are not written yet.
func (t *Table) Sort(sort func(rows [][]Cell)) { sort(t.first) }

// Flush writes the rows that were kept, with the titles before the first.
func (t *Table) Flush() error {
	if t.flowing || len(t.first) == 0 {
		return t.err
	}
	t.flowing = true
	t.measure()
	titles := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = Cell{c.Title, Heading}
	}
	t.write(titles)
	for _, row := range t.first {
		t.write(row)
	}
	t.first = nil
	return t.err
}

// measure sets the widths by the first rows. Columns that give way share what the others leave.
func (t *Table) measure() {
	t.widths = make([]int, len(t.Columns))
	total := -2
	for i, c := range t.Columns {
		for _, row := range t.first {
			t.widths[i] = max(t.widths[i], ansi.StringWidth(row[i].Text))
		}
		if c.Optional && t.widths[i] == 0 {
			continue
		}
		t.widths[i] = max(t.widths[i], len(c.Title))
		total += t.widths[i] + 2
	}
	if t.Width == 0 {
		return
	}
	total = t.shrink(total, fairFlex)
	for i, c := range slices.Backward(t.Columns) {
		if c.Spare && t.widths[i] > 0 && total > t.Width {
			total -= t.widths[i] + 2
			t.widths[i] = 0
		}
	}
	t.shrink(total, leastFlex)
}

// shrink makes the columns that give way narrower, the widest first, until the table fits or none
// is wider than the least. It returns how wide the table is then.
func (t *Table) shrink(total, least int) int {
	for total > t.Width {
		widest := -1
		for i, c := range t.Columns {
			if c.Flex && t.widths[i] > least && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		t.widths[widest]--
		total--
	}
	return total
}

// write writes one row. Whatever a cell contains, no more than its text reaches the terminal.
func (t *Table) write(cells []Cell) {
	if t.err != nil {
		return
	}
	_, t.err = io.WriteString(t.Out, t.line(cells)+"\n")
}

func (t *Table) line(cells []Cell) string {
	var line strings.Builder
	for i, cell := range cells {
		if t.widths[i] == 0 {
			continue // it is left out
		}
		text := strings.ReplaceAll(Lines(cell.Text), "\n", "\\n")
		if t.Width > 0 && t.Columns[i].Flex {
			text = cutText(text, t.widths[i])
		}
		pad := strings.Repeat(" ", max(t.widths[i]-ansi.StringWidth(text), 0))
		if t.Colors {
			text = cell.Style.Styled(text)
		}
		switch {
		case t.Columns[i].Right:
			text = pad + text
		case i < len(cells)-1:
			text += pad
		}
		if i > 0 {
			line.WriteString("  ")
		}
		line.WriteString(text)
	}
	return strings.TrimRight(line.String(), " ")
}

// A Style says how important a text is.
type Style int

// The styles of texts.
const (
	Plain   Style = iota
	Faint         // of no importance
	Heading       // of a column
	Good          // as it should be
	Warning       // to be looked at
	Bad           // wrong
)

var styles = map[Style]ansi.Style{
	Faint: ansi.NewStyle().Faint(), Heading: ansi.NewStyle().Bold(),
	Good: ansi.NewStyle().ForegroundColor(ansi.Green), Warning: ansi.NewStyle().ForegroundColor(ansi.Yellow),
	Bad: ansi.NewStyle().ForegroundColor(ansi.Red),
}

// Styled gives a shown text its style.
func (s Style) Styled(text string) string {
	if style, ok := styles[s]; ok && text != "" {
		return style.Styled(text)
	}
	return text
}

// Colors reports whether a terminal may get colors: not if NO_COLOR is set, whatever it says, and
// not if the terminal has none.
func Colors() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}
