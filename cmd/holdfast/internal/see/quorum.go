package see

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
)

// QuorumStatus prints which masters of a quorum count.
type QuorumStatus struct {
	cli.Connection
	Trust bool // make new masters count
	Out   io.Writer
}

// Run prints a line for each master. A *cli.ExitError says that no majority counts.
func (s *QuorumStatus) Run(ctx context.Context) error {
	var c cli.Checklist
	s.Connection.Check(&c)
	c.Check(s.IsQuorum(), "--redis or REDIS_URL names one server: give --redis once for each master, or quorum:URL,URL,URL")
	if err := c.Err(); err != nil {
		return err
	}
	members := server.Members(s.Redis)
	client, end, err := s.NewClient(holdfast.Config{TrustNewNodes: s.Trust})
	if err != nil {
		return err
	}
	defer end()
	nodes, err := client.Quorum(ctx)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(s.Out, 0, 8, 2, ' ', 0)
	counting, need := 0, len(nodes)/2+1
	for i, n := range nodes {
		word, why := "counts", fmt.Sprintf("remembers %v", n.Age.Round(time.Second))
		switch {
		case n.Err != nil:
			word, why = "away", nodeError(n.Err)
		case n.Counts:
			counting++
		case n.SameAs != "":
			word, why = "twin", n.Why
		default:
			word, why = "young", n.Why
		}
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", n.Node, server.Redact(members[i]), word, show.Lines(why))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if counting < need {
		return cli.Exitf(cli.ExitNoServer, "no majority: %d of %d masters count, %d are needed", counting, len(nodes), need)
	}
	return nil
}

// nodeError is an error without the name of the node, which its line has.
func nodeError(err error) string {
	var failed *holdfast.StoreError
	if errors.As(err, &failed) {
		return fmt.Sprintf("%s: %v", failed.Kind, failed.Err)
	}
	return err.Error()
}

func newQuorum() *cobra.Command {
	root := &cobra.Command{
		Use:   "quorum",
		Short: "Look at the masters of a quorum",
		Args:  cli.UnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(newQuorumStatus())
	return root
}

func newQuorumStatus() *cobra.Command {
	s := &QuorumStatus{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell which masters count, and why the others do not",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Out = cmd.OutOrStdout()
			return s.Run(cmd.Context())
		},
	}
	s.AddFlags(cmd)
	cmd.Flags().BoolVar(&s.Trust, "trust-new-nodes", false,
		"let restarted masters count from now on: only if they cannot have forgotten a lock")
	return cmd
}
