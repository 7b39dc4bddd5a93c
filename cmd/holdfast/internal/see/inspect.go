package see

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Inspect shows all that is known of a name.
type Inspect struct {
	cli.Connection
	cli.Output
	Name  string
	All   bool // all waiters, and not the first 100
	Why   bool // what the holders wait for, too
	Stack bool // which call took each hold, too
}

// Run asks once, and for more waiters if all are wanted.
func (i *Inspect) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckName(&c, i.Name)
	i.Output.Check(&c, cli.ListFormats...)
	c.Check(!i.Why || i.Format == cli.FormatTable, "--why with --output %s: holdfast why prints a chain", i.Format)
	client, end, err := i.Open(c, holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	info, err := client.Inspect(ctx, i.Name)
	if err != nil {
		return i.Failure(err)
	}
	var stacks []lockinfo.Stack
	if i.Stack {
		if stacks, err = client.Stacks(ctx, i.Name); err != nil {
			return i.Failure(err)
		}
	}
	queue := waitersOf(info.Queue)
	if i.All && len(info.Queue) > 0 {
		queue = client.Queue(ctx, i.Name)
	}
	if i.Format != cli.FormatTable {
		return i.printDocument(info, queue, stacks)
	}
	page := i.Page()
	if err := page.Detail(info); err != nil {
		return err
	}
	if err := page.Stacks(stacks); err != nil {
		return err
	}
	if err := i.printQueue(page, info, queue); err != nil || !i.Why {
		return err
	}
	return i.printChain(ctx, client, page)
}

// printDocument prints the name with its queue, and with its stacks if they are wanted.
func (i *Inspect) printDocument(info lockinfo.Info, queue iter.Seq2[lockinfo.Waiter, error],
	stacks []lockinfo.Stack) error {
	info.Queue = nil
	for w, err := range queue {
		if err != nil {
			return i.Failure(err)
		}
		info.Queue = append(info.Queue, w)
	}
	if !i.Stack {
		return i.PrintDocument(info)
	}
	return i.PrintDocument(struct {
		Lock   lockinfo.Info    `json:"lock"`
		Stacks []lockinfo.Stack `json:"stacks"`
	}{info, append([]lockinfo.Stack{}, stacks...)})
}

// printChain prints why the waiters wait, below the queue.
func (i *Inspect) printChain(ctx context.Context, client *holdfast.Client, page show.Page) error {
	chain, err := client.Why(ctx, i.Name)
	if err != nil {
		return i.Failure(err)
	}
	if _, err := fmt.Fprintln(i.Out); err != nil {
		return err
	}
	return page.Chain(chain)
}

// waitersOf is a stream of waiters that are known.
func waitersOf(queue []lockinfo.Waiter) iter.Seq2[lockinfo.Waiter, error] {
	return func(yield func(lockinfo.Waiter, error) bool) {
		for _, w := range queue {
			if !yield(w, nil) {
				return
			}
		}
	}
}

func (i *Inspect) printQueue(page show.Page, info lockinfo.Info, queue iter.Seq2[lockinfo.Waiter, error]) error {
	if len(info.Queue) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(i.Out); err != nil {
		return err
	}
	table, waiters := page.Table(show.WaiterColumns), 0
	for w, err := range queue {
		if err != nil {
			return i.Failure(err)
		}
		if w.Place > 0 {
			waiters++
		}
		if err := table.Row(show.WaiterRow(w, info)...); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if more := info.Waiters - waiters; more > 0 && !i.All {
		_, err := fmt.Fprintf(i.Out, "and %d more: --all shows them\n", more)
		return err
	}
	return nil
}

func newInspect() *cobra.Command {
	i := &Inspect{}
	cmd := &cobra.Command{
		Use:                   "inspect NAME",
		Short:                 "Show who holds a name, who waits, and what keeps others out",
		DisableFlagsInUseLine: true,
		Args:                  cli.OneName(&i.Name),
		RunE:                  func(cmd *cobra.Command, _ []string) error { return i.Run(cmd.Context()) },
	}
	i.AddNameFlags(cmd)
	cmd.Flags().BoolVar(&i.All, "all", false, "show all waiters, and not only the first 100")
	cmd.Flags().BoolVar(&i.Why, "why", false, "show what the holders wait for, too: it takes the permission +scan, as why does")
	cmd.Flags().BoolVar(&i.Stack, "stack", false, "ask the holders' processes which line of code holds the name, too")
	i.Output.AddFlags(cmd, cli.ListFormats...)
	return cmd
}

// Why shows why a name is waited for.
type Why struct {
	cli.Connection
	cli.Output
	Name string
}

// Run looks once.
func (w *Why) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckName(&c, w.Name)
	w.Output.Check(&c, whyFormats...)
	client, end, err := w.Open(c, holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	chain, err := client.Why(ctx, w.Name)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return w.Failure(err)
	}
	if w.Format == cli.FormatJSON {
		return w.PrintDocument(chain)
	}
	return w.Page().Chain(chain)
}

var whyFormats = []string{cli.FormatTable, cli.FormatJSON}

func newWhy() *cobra.Command {
	w := &Why{}
	cmd := &cobra.Command{
		Use:                   "why NAME",
		Short:                 "Show why a name is waited for, to the root",
		DisableFlagsInUseLine: true,
		Args:                  cli.OneName(&w.Name),
		RunE:                  cli.UntilSignal(w.Run),
	}
	w.AddNameFlags(cmd)
	w.Output.AddFlags(cmd, whyFormats...)
	return cmd
}
