package act

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Deadlocks shows callers that wait for each other.
type Deadlocks struct {
	cli.Connection
	cli.Output
}

// Run looks once.
func (d *Deadlocks) Run(ctx context.Context) error {
	var c cli.Checklist
	d.Output.Check(&c, cli.ListFormats...)
	c.Check(!d.IsQuorum(), "a quorum has no queue, in which waiters could say what they hold")
	client, end, err := d.Open(c, holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	found, err := client.Deadlocks(ctx)
	if err != nil {
		return d.Failure(err)
	}
	report := deadlocksReport{Deadlocks: append([]lockinfo.Deadlock{}, found...), Possible: []lockinfo.Deadlock{}}
	if err := report.addPossible(client.List(ctx, holdfast.ListOptions{Contended: true})); err != nil {
		return d.Failure(err)
	}
	switch d.Format {
	case cli.FormatJSON:
		return d.PrintDocument(report)
	case cli.FormatLines:
		for _, each := range slices.Concat(report.Deadlocks, report.Possible) {
			if err := d.PrintDocument(each); err != nil {
				return err
			}
		}
		return nil
	}
	return d.print(report)
}

// A deadlocksReport is what is known of deadlocks.
type deadlocksReport struct {
	Deadlocks []lockinfo.Deadlock `json:"deadlocks"`
	Possible  []lockinfo.Deadlock `json:"possible"` // as far as processes and owners tell
	Waiters   int                 `json:"waiters"`
	Telling   int                 `json:"telling"` // waiters that tell what they hold
}

// addPossible adds what processes and owners tell of all names that are waited for.
func (r *deadlocksReport) addPossible(names iter.Seq2[lockinfo.Info, error]) error {
	var all []lockinfo.Info
	told := map[string]bool{}
	for info, err := range names {
		if err != nil {
			return err
		}
		if told[info.Name] {
			continue
		}
		told[info.Name] = true
		all = append(all, info)
		r.Waiters += info.Waiters
		for _, w := range info.Queue {
			if len(w.Under) > 0 {
				r.Telling++
			}
		}
	}
	for _, cycle := range lockinfo.PossibleDeadlocks(all) {
		if slices.ContainsFunc(cycle.Members, func(m lockinfo.Member) bool { return m.Perhaps }) {
			r.Possible = append(r.Possible, cycle)
		}
	}
	return nil
}

func (d *Deadlocks) print(r deadlocksReport) error {
	for _, list := range []struct {
		title string
		all   []lockinfo.Deadlock
	}{{"deadlock", r.Deadlocks}, {"possible deadlock", r.Possible}} {
		for i, each := range list.all {
			_, err := fmt.Fprintf(d.Out, "%s %d of %d:\n%s", list.title, i+1, len(list.all), show.Cycle(each))
			if err != nil {
				return err
			}
		}
	}
	switch {
	case len(r.Deadlocks) == 0 && len(r.Possible) == 0:
		d.Note("no deadlock was found among %d waiters, of which %d tell what they hold", r.Waiters, r.Telling)
	case len(r.Possible) > 0:
		d.Note("possible: only the process or the owner tells that a holder and a waiter are the same caller")
	}
	return nil
}

func newDeadlocks() *cobra.Command {
	d := &Deadlocks{}
	cmd := &cobra.Command{
		Use:   "deadlocks",
		Short: "Show callers that wait for each other",
		Args:  cli.NoArgs,
		RunE:  cli.UntilSignal(d.Run),
	}
	d.Connection.AddFlags(cmd)
	d.Output.AddFlags(cmd, cli.ListFormats...)
	return cmd
}
