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
	lines := [][2]Cell{{{"name", Heading}, {Text: Text(info.Name)}}}
	if info.Kind != "" {
		lines = append(lines, [2]Cell{{"kind", Heading}, {Text: Lines(string(info.Kind))}})
	}
	lines = append(lines, [2]Cell{{"state", Heading}, stateCell(info)})
	switch {
	case info.Foreign != "":
		lines = append(lines, [2]Cell{{"foreign", Heading}, {Text: Lines(info.Foreign)}})
	case info.Kind == lockinfo.KindSemaphore:
		lines = append(lines, [2]Cell{{"permits", Heading},
			{Text: fmt.Sprintf("%d, %d of them taken", info.Permits, info.Taken)}})
	case info.Kind == lockinfo.KindLatch:
		lines = append(lines, [2]Cell{{"count", Heading}, {Text: fmt.Sprintf("%d to count down", info.Count)}})
	}
	lines = append(lines, [2]Cell{{"holds", Heading}, {Text: countText(info.Holders, len(info.Holds))}})
	if info.Masters == nil {
		lines = append(lines, [2]Cell{{"waiting", Heading}, {Text: fmt.Sprint(info.Waiters)}})
	}
	for _, line := range lines {
		label := fmt.Sprintf("%-8s", line[0].Text)
		text := line[1].Text
		if p.Colors {
			label, text = Heading.Styled(label), line[1].Style.Styled(text)
		}
		if _, err := fmt.Fprintln(p.Out, label, text); err != nil {
			return err
		}
	}
	if err := p.masters(info); err != nil {
		return err
	}
	return p.holds(info)
}

func countText(all, shown int) string {
	if all > shown {
		return fmt.Sprintf("%d, the first %d below", all, shown)
	}
	return fmt.Sprint(all)
}

func (p Page) masters(info lockinfo.Info) error {
	if len(info.Masters) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(p.Out); err != nil {
		return err
	}
	table := p.Table(MasterColumns)
	for _, m := range info.Masters {
		if err := table.Row(MasterRow(m)...); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.Out, Verdict(info))
	return err
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

func (p Page) holds(info lockinfo.Info) error {
	if len(info.Holds) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(p.Out); err != nil {
		return err
	}
	table := p.Table(HoldColumns)
	for _, h := range info.Holds {
		if err := table.Row(HoldRow(h, info)...); err != nil {
			return err
		}
	}
	return table.Flush()
}
