package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Deadlocks shows callers that wait for each other.
type Deadlocks struct {
	connection
	output
}

// Run looks once.
func (d *Deadlocks) Run(ctx context.Context) error {
	var c checklist
	d.output.check(&c, listFormats...)
	d.connection.check(&c)
	c.check(!d.quorum(), "a quorum has no queue, in which waiters could say what they hold")
	if err := c.err(); err != nil {
		return err
	}
	client, end, err := d.client(holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	found, err := client.Deadlocks(ctx)
	if err != nil {
		return d.failure(err)
	}
	switch d.Format {
	case formatJSON:
		return d.document(struct {
			Deadlocks []lockinfo.Deadlock `json:"deadlocks"`
		}{append([]lockinfo.Deadlock{}, found...)})
	case formatLines:
		for _, each := range found {
			if err := d.document(each); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		d.note("no deadlock was found")
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := interruptible(cmd.Context())
			defer cancel()
			d.Out, d.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return d.Run(ctx)
		},
	}
	d.connection.flags(cmd)
	d.output.flags(cmd, listFormats...)
	return cmd
}
