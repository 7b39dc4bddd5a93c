package show

import (
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// A Page says how something is written: to what, for how wide a terminal (0: none), and whether in
// colors.
type Page struct {
	Out    io.Writer
	Width  int
	Colors bool
}

// Table begins a table.
func (p Page) Table(columns []Column) *Table {
	return &Table{Out: p.Out, Width: p.Width, Colors: p.Colors, Columns: columns}
}

// Detail writes what is known of a name, without its queue.
func (p Page) Detail(info lockinfo.Info) error {
	var failed error
	line := func(label string, cell Cell) {
		label = fmt.Sprintf("%-8s", label)
		if p.Colors {
			label, cell.Text = Heading.Styled(label), cell.Style.Styled(cell.Text)
		}
		if failed == nil {
			_, failed = fmt.Fprintln(p.Out, label, cell.Text)
		}
	}
	line("name", Cell{Text: Text(info.Name)})
	if info.Kind != "" {
		line("kind", Cell{Text: Lines(string(info.Kind))})
	}
	line("state", stateCell(info))
	switch {
	case info.Foreign != "":
		line("foreign", Cell{Text: Lines(info.Foreign)})
	case info.Kind == lockinfo.KindSemaphore:
		line("permits", Cell{Text: fmt.Sprintf("%d, %d of them taken", info.Permits, info.Taken)})
	case info.Kind == lockinfo.KindLatch:
		line("count", Cell{Text: fmt.Sprintf("%d to count down", info.Count)})
	}
	line("holds", Cell{Text: countText(info.Holders, len(info.Holds))})
	if info.Masters == nil {
		line("waiting", Cell{Text: fmt.Sprint(info.Waiters)})
	}
	if failed != nil {
		return failed
	}
	return p.writeTables(info)
}

// writeTables writes what each master says, and the holds.
func (p Page) writeTables(info lockinfo.Info) error {
	var masters, holds [][]Cell
	for _, m := range info.Masters {
		masters = append(masters, MasterRow(m))
	}
	for _, h := range info.Holds {
		holds = append(holds, HoldRow(h, info))
	}
	if err := p.writeTable(MasterColumns, masters); err != nil {
		return err
	}
	if len(masters) > 0 {
		if _, err := fmt.Fprintln(p.Out, Verdict(info)); err != nil {
			return err
		}
	}
	return p.writeTable(HoldColumns, holds)
}

// writeTable writes a table below an empty line, unless it has no rows.
func (p Page) writeTable(columns []Column, rows [][]Cell) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(p.Out); err != nil {
		return err
	}
	table := p.Table(columns)
	for _, row := range rows {
		_ = table.Row(row...) // Flush tells of an error
	}
	return table.Flush()
}

func countText(all, shown int) string {
	if all > shown {
		return fmt.Sprintf("%d, the first %d below", all, shown)
	}
	return fmt.Sprint(all)
}

// Verdict says what the masters of a quorum say together.
func Verdict(info lockinfo.Info) string {
	counting, need := lockinfo.Counting(info.Masters)
	if counting < need {
		return fmt.Sprintf("verdict: none, %d of %d masters count, %d are needed", counting, len(info.Masters), need)
	}
	return fmt.Sprintf("verdict: %s, by %d of %d masters that count", Lines(string(info.State())), counting,
		len(info.Masters))
}

// Stacks writes which call took each hold, the innermost frame first, or why that is not known.
func (p Page) Stacks(stacks []lockinfo.Stack) error {
	for _, s := range stacks {
		lines := []string{"", fmt.Sprintf("%s, token %d", holderProcess(s.Hold), s.Hold.Token)}
		switch {
		case s.Why != "":
			lines[1] += ": " + Lines(s.Why)
		case s.Leases > 1:
			lines[1] += fmt.Sprintf(": the oldest of %d leases was taken %s ago by", s.Leases, Age(s.Age))
		default:
			lines[1] += fmt.Sprintf(": taken %s ago by", Age(s.Age))
		}
		for _, f := range s.Frames {
			lines = append(lines, fmt.Sprintf("  %s %s:%d", Text(f.Function), Text(f.File), f.Line))
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(p.Out, line); err != nil {
				return err
			}
		}
	}
	return nil
}
