package act

import (
	"context"
	"fmt"

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
	switch d.Format {
	case cli.FormatJSON:
		return d.PrintDocument(struct {
			Deadlocks []lockinfo.Deadlock `json:"deadlocks"`
		}{append([]lockinfo.Deadlock{}, found...)})
	case cli.FormatLines:
		for _, each := range found {
			if err := d.PrintDocument(each); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		d.Note("no deadlock was found")
	}
	for i, each := range found {
		if _, err := fmt.Fprintf(d.Out, "deadlock %d of %d:\n%s", i+1, len(found), show.Cycle(each)); err != nil {
			return err
		}
	}
	return nil
}

func newDeadlocks() *cobra.Command {
	d := &Deadlocks{}
	cmd := &cobra.Command{
		Use:   "deadlocks",
		Short: "Show callers that wait for each other",
		Long: `Show cycles of callers of which each waits for a name that the next one holds. Only callers with
WithDeadlockCheck say what they hold while they wait. Each of them ends its own cycles after a while
(WaitDeadlock), so that a cycle shown here may be gone. Waits for semaphores, waits at a quorum
and callers without the option are not seen. If there seem to be cycles, it looks at them again, for
up to 10 s. Nothing is ended by this command: break and evict do that.

Exit codes: 0 the server answered, whatever was found; 64 usage; 69 no server, or it cannot serve
now; 77 the server refuses this client: to look for names takes the permission +scan.`,
		Args: cli.NoArgs,
		RunE: cli.UntilSignal(func(ctx context.Context, cmd *cobra.Command) error {
			d.Out, d.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return d.Run(ctx)
		}),
	}
	d.Connection.AddFlags(cmd)
	d.Output.AddFlags(cmd, cli.ListFormats...)
	return cmd
}
