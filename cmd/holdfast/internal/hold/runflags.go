package hold

import (
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
)

const runLong = `Run a command while this process holds the lock NAME. Other processes that want the lock wait,
first come, first served.

No shell is involved. The command gets its arguments and standard streams unchanged, and its exit
code is passed on. It runs in a process group of its own, which has the terminal if there is one.
INT, TERM, HUP, QUIT, USR1 and USR2 are passed on.

The lock is renewed while the command runs, and released after its end. If no renewal succeeds,
the command gets TERM when the rest of the TTL falls below the smaller of --grace and a third of
--ttl. Its whole process group gets KILL before another can hold the lock, or at once if the
server says that another can hold it already. If an operator breaks the lock, the command gets TERM,
and KILL after that same time: nobody else gets in before. With --on-lost=term or ignore, the
command may go on while another holds the lock: this gives up the promise of a lock.

Without a flag, NAME is a mutex. With --shared and --exclusive it is a lock for readers and writers,
and with --slots a number of slots; the library calls these RWMutex and Semaphore. A name is one of
them at a time.

The command sees HOLDFAST_NAME, HOLDFAST_TOKEN (grows with every holder: let storage refuse
smaller tokens), HOLDFAST_TOKENS (of each name, as JSON), HOLDFAST_OWNER, HOLDFAST_TTL and
HOLDFAST_REDIS (without the password). A run inside of another one tells what the runs around it
hold while it waits, by HOLDFAST_UNDER: so why and deadlocks know.

Exit codes: that of the command; 128+n if signal n ended it; 64 usage; 69 no server, or it cannot
serve now; 75 another holds the lock, or the wait was too long; 76 the lock was lost while the
command ran; 77 the server refuses this client; 126 the command may not be run; 127 the command was not
found.`

func newRun() *cobra.Command {
	r := &Run{}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME -- CMD ARGS...",
		Short: "Run a command under a lock",
		Long:  runLong,
		Example: `  holdfast run nightly-report -- ./report.sh
  holdfast run -n --min-hold 50s minutely -- ./tick    # on all hosts
  holdfast run --slots 4 thumbnails -- ./resize.sh   # at most four at a time
  holdfast run --name db --name cache -- ./rebuild   # both names, or none
  holdfast run -w 30s deploy -- ./deploy.sh       # waits 30 s, or exits with 75`,
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
