package hold

import (
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
)

func newRun() *cobra.Command {
	r := &Run{}
	cmd := &cobra.Command{
		Use:                   "run [flags] NAME -- CMD ARGS...",
		Short:                 "Run a command under a lock",
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			return r.parseArgs(args, cmd.ArgsLenAtDash(), "holdfast run [flags] NAME -- CMD ARGS...")
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.In, r.Out, r.Err = os.Stdin, os.Stdout, os.Stderr
			return r.Run(cmd.Context())
		},
	}
	r.Connection.AddFlags(cmd)
	cmd.ValidArgsFunction = cli.CompleteNameAndCommand(&r.Connection)
	flags := cmd.Flags()
	r.choice.flags(flags)
	r.waitOptions.flags(flags)
	flags.IntVarP(&r.Conflict, "conflict-exit-code", "E", cli.ExitBusy,
		"exit code if another holds the lock, or the wait was too long")
	cli.DurationVar(flags, &r.MaxHold, "max-hold", "", 0,
		"the longest time to hold the lock, whatever the command does; the lock is lost then")
	cli.DurationVar(flags, &r.MinHold, "min-hold", "", 0,
		"the shortest time that others are kept out, even if the command ends sooner")
	flags.StringVar(&r.Owner, "owner", "", "runs of one owner do not exclude each other: --owner \"$HOLDFAST_OWNER\" enters the lock of the outer run")
	flags.StringVar(&r.OnWanted, "on-wanted", "",
		"`SIGNAL` for the command as soon as others wait for the lock, or ask for it: TERM, INT, HUP, QUIT, USR1 or USR2")
	_ = cmd.RegisterFlagCompletionFunc("on-wanted",
		cobra.FixedCompletions(wantedNames(), cobra.ShellCompDirectiveNoFileComp))
	cli.DurationVar(flags, &r.Replace, "replace", "", 0,
		"take the place of the run that holds: ask it to let go, and break its hold after this time")
	flags.Lookup("replace").NoOptDefVal = replaceAfter.String()
	r.superviseFlags(cmd)
	r.logOptions.flags(flags, "print how long the wait for the lock was, and how long it was held")
	return cmd
}

// superviseFlags adds the flags that say how the command is run while the lock is held.
func (r *Run) superviseFlags(cmd *cobra.Command) {
	r.holdFlags(cmd)
	cmd.Flags().StringVar(&r.OnLost, "on-lost", onLostKill,
		"`ACTION` when the lock is lost: kill, term or ignore; only kill keeps the promise that the command is gone")
	_ = cmd.RegisterFlagCompletionFunc("on-lost",
		cobra.FixedCompletions([]string{onLostKill, onLostTerm, onLostIgnore}, cobra.ShellCompDirectiveNoFileComp))
}

// holdFlags adds the flags that say how long the lock is held, and by whom.
func (r *Run) holdFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	cli.DurationVar(flags, &r.TTL, "ttl", "", 15*time.Second,
		"how long the lock outlives a crash; it is renewed every third of that time")
	flags.StringVar(&r.Label, "label", "", "name of this run for other processes (default: command@host/process)")
	cli.DurationVar(flags, &r.Grace, "grace", "", 5*time.Second,
		"how long before KILL the command gets TERM; at most a third of --ttl")
}

// parseArgs sets Names and Command. dash is the number of arguments before "--", negative if there
// is none.
func (r *Run) parseArgs(args []string, dash int, synopsis string) error {
	problem := ""
	switch {
	case len(args) == 0:
		problem = "no NAME and no command"
	case len(r.Names) > 0 && dash == 0:
		r.Command = args
		return nil
	case len(r.Names) > 0:
		problem = fmt.Sprintf("%q before --: --name has the names", args[0])
	case dash == 0:
		problem = "no NAME before --"
	case dash < 0 && len(args) == 1:
		problem = "no command"
	case dash < 0:
		problem = fmt.Sprintf("no -- between NAME %q and the command %q", args[0], args[1])
	case dash > 1:
		problem = fmt.Sprintf("more than one NAME: %q", args[:dash])
	case len(args) == 1:
		problem = "no command after --"
	}
	if problem != "" {
		return cli.Usagef("%s: %s", problem, synopsis)
	}
	r.Names, r.Command = args[:1], args[1:]
	return nil
}
