package see

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// mostSorted is how many names a sorted list has at most. The help says it in words.
const mostSorted = 1000

// unsorted is the order of a list that is printed while it is read.
const unsorted = "none"

// Ls lists names.
type Ls struct {
	cli.Connection
	cli.Output
	Options holdfast.ListOptions
	Sort    string

	waits func(name string, hold lockinfo.Hold) []lockinfo.Wait // nil: the list does not tell
}

// isProcess reports whether a text is a host, or a host and a process id.
func isProcess(text string) bool {
	_, id, both := strings.Cut(text, "/")
	number, err := strconv.ParseUint(id, 10, 31)
	return !both || err == nil && number > 0
}

func orderNames() []string {
	out := []string{unsorted}
	for _, order := range snapshot.Orders {
		out = append(out, string(order))
	}
	return out
}

// Run lists the names. After an error, what came before it was printed.
func (l *Ls) Run(ctx context.Context) error {
	client, end, err := l.Open(l.check(), holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	if (l.Options.Process != "" || l.Options.Contended) && l.Format == cli.FormatTable {
		if l.waits, err = readWaits(client.List(ctx, holdfast.ListOptions{Contended: true})); err != nil {
			return l.Failure(err)
		}
	}
	out, printAll := l.newList(), printUnsorted
	if l.Sort != unsorted {
		printAll = l.printSorted
	}
	err = printAll(client.List(ctx, l.Options), out)
	// A signal counts before the error that it led to, and both before one of the last line.
	err = l.Failure(cmp.Or(context.Cause(ctx), err))
	return cmp.Or(err, out.end(err))
}

// check returns the list of what is wrong with the flags.
func (l *Ls) check() (c cli.Checklist) {
	cli.CheckPattern(&c, l.Options.Pattern)
	c.Check(l.Options.OlderThan >= 0, "--older-than %v: it must not be negative", l.Options.OlderThan)
	c.Check(isProcess(l.Options.Process), "--process %q: it must be HOST or HOST/PID", l.Options.Process)
	c.Check(slices.Contains(orderNames(), l.Sort), "--sort %q: it must be one of %s", l.Sort,
		strings.Join(orderNames(), ", "))
	l.Output.Check(&c, cli.ListFormats...)
	return c
}

// readWaits reads the names that somebody waits for, and returns what lockinfo.Waits knows of them.
func readWaits(names iter.Seq2[lockinfo.Info, error]) (func(string, lockinfo.Hold) []lockinfo.Wait, error) {
	var all []lockinfo.Info
	for info, err := range names {
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return lockinfo.Waits(all), nil
}

// chosenHolds returns the holds of the chosen process, or all of them if none is chosen.
func (l *Ls) chosenHolds(info lockinfo.Info) []lockinfo.Hold {
	if l.Options.Process == "" {
		return info.Holds
	}
	return slices.DeleteFunc(slices.Clone(info.Holds), func(h lockinfo.Hold) bool {
		return l.Options.Process != h.Host && l.Options.Process != h.Host+"/"+strconv.Itoa(h.PID)
	})
}

// printUnsorted prints names as they come. A name that SCAN returns again is printed once.
func printUnsorted(names iter.Seq2[lockinfo.Info, error], out list) error {
	seen := snapshot.NewWindow()
	for info, err := range names {
		if err != nil {
			return err
		}
		if !seen.Add(info.Name) {
			continue
		}
		if err := out.add(info); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ls) printSorted(names iter.Seq2[lockinfo.Info, error], out list) error {
	s, err := snapshot.Take(names, snapshot.Order(l.Sort).Compare, mostSorted)
	if err != nil {
		return err
	}
	for _, info := range s.Locks {
		if err := out.add(info); err != nil {
			return err
		}
	}
	if s.Total > len(s.Locks) {
		l.Note("of %d names the first %d by %s are shown: a PATTERN or a filter shows others, and --sort %s all", s.Total,
			len(s.Locks), l.Sort, unsorted)
	}
	return nil
}

// A list prints names: add each name, and end after the last, or after an error.
type list interface {
	add(info lockinfo.Info) error
	end(err error) error
}

func (l *Ls) newList() list {
	switch l.Format {
	case cli.FormatJSON:
		return &documentList{out: l.Out}
	case cli.FormatLines:
		return lineList{l}
	}
	columns := append(slices.Clone(show.LockColumns),
		show.Column{Title: "HOST/PID", Flex: true, Optional: true, Spare: true})
	if l.waits != nil {
		columns = append(columns, show.WaitsColumn)
	}
	return &tableList{ls: l, table: l.Page().Table(columns), since: map[string]time.Time{}}
}

// A lineList is a document a line, one for each name.
type lineList struct{ ls *Ls }

func (l lineList) add(info lockinfo.Info) error { return l.ls.PrintDocument(info) }
func (lineList) end(error) error                { return nil }

// A tableList has a row for each name.
type tableList struct {
	ls    *Ls
	table *show.Table
	since map[string]time.Time // which of the names is waited for since when
	names int
}

func (t *tableList) add(info lockinfo.Info) error {
	t.names++
	row := append(show.LockRow(info), show.ProcessCell(info))
	if t.ls.waits != nil {
		t.since[row[0].Text] = info.WaitingSince
		row = append(row, show.WaitsCell(info.Name, t.ls.chosenHolds(info), t.ls.waits))
	}
	return t.table.Row(row...)
}

func (t *tableList) end(err error) error {
	if t.ls.Sort == unsorted { // a short list is sorted, by the longest wait if all wait, and by name
		t.table.Sort(func(rows [][]show.Cell) {
			slices.SortStableFunc(rows, func(a, b []show.Cell) int {
				x, y := a[0].Text, b[0].Text
				if t.ls.Options.Contended {
					return cmp.Or(t.since[x].Compare(t.since[y]), snapshot.CompareNames(x, y))
				}
				return snapshot.CompareNames(x, y)
			})
		})
	}
	if t.names == 0 && err == nil {
		t.ls.Note("no such name is held or waited for")
	}
	return t.table.Flush()
}

// A documentList is one document, which is written while the names come.
type documentList struct {
	out   io.Writer
	names int
}

func (d *documentList) add(info lockinfo.Info) error {
	text, err := show.JSON(info, "")
	if err != nil {
		return err
	}
	before := ",\n"
	if d.names == 0 {
		before = fmt.Sprintf("{\"version\":%d,\"locks\":[\n", lockinfo.Version)
	}
	d.names++
	_, err = io.WriteString(d.out, before+text)
	return err
}

// end closes the document. After an error it says that it is not complete; an error before the
// first name is told without a document.
func (d *documentList) end(err error) error {
	if d.names == 0 {
		if err != nil {
			return nil
		}
		_, err := fmt.Fprintf(d.out, "{\"version\":%d,\"locks\":[],\"complete\":true}\n", lockinfo.Version)
		return err
	}
	_, err = fmt.Fprintf(d.out, "\n],\"complete\":%t}\n", err == nil)
	return err
}

func newLs() *cobra.Command {
	l := &Ls{}
	cmd := &cobra.Command{
		Use:                   "ls [PATTERN]",
		Short:                 "List who holds and who waits",
		DisableFlagsInUseLine: true,
		Args:                  cli.OnePattern(&l.Options.Pattern),
		RunE:                  cli.UntilSignal(l.Run),
	}
	l.AddNameFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&l.Options.Contended, "contended", false, "only names with waiters")
	cli.DurationVar(flags, &l.Options.OlderThan, "older-than", "", 0,
		"only names with a hold that is older, such as 90 (seconds) or 10m")
	flags.StringVar(&l.Options.Label, "label", "", "only names with a holder of this label")
	flags.StringVar(&l.Options.Process, "process", "", "only names with a holder of this process: `HOST` or HOST/PID")
	flags.StringVar(&l.Sort, "sort", unsorted, "`ORDER`: "+strings.Join(orderNames(), ", ")+"; the first 1,000 are shown")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(orderNames(), cobra.ShellCompDirectiveNoFileComp))
	l.Output.AddFlags(cmd, cli.ListFormats...)
	return cmd
}
