package hold

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
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

// Validate refuses bad arguments, and names each with its value. It sends nothing and shows no
// password.
func (r *Run) Validate() error {
	var c cli.Checklist
	check := c.Check
	r.choice.check(&c)
	cli.CheckTTL(&c, &r.Connection, r.TTL)
	check(len(r.Command) > 0 && r.Command[0] != "", "no command")
	check(r.MaxHold == 0 || r.MaxHold >= cli.LeastTTL, "--max-hold %v: it must be at least %v", r.MaxHold, cli.LeastTTL)
	check(r.MinHold >= 0 && r.MinHold <= cli.MostTTL, "--min-hold %v: it must be 0 to %v", r.MinHold, cli.MostTTL)
	check(r.MaxHold <= 0 || r.MinHold <= r.MaxHold, "--max-hold %v: it must not be below --min-hold %v", r.MaxHold,
		r.MinHold)
	check(r.Grace >= 0, "--grace %v: it must not be negative", r.Grace)
	check(r.Conflict >= 0 && r.Conflict <= 255, "--conflict-exit-code %d: it must be 0 to 255", r.Conflict)
	check(slices.Contains([]string{onLostKill, onLostTerm, onLostIgnore}, r.OnLost),
		"--on-lost %q: it must be kill, term or ignore", r.OnLost)
	check(len(r.Owner) <= cli.MaxText, "--owner of %d bytes: it must have at most %d", len(r.Owner), cli.MaxText)
	check(len(r.Label) <= cli.MaxText, "--label of %d bytes: it must have at most %d", len(r.Label), cli.MaxText)
	check(!strings.ContainsRune(r.Owner, 0), "--owner %q: it must not contain a zero byte", r.Owner)
	if r.IsQuorum() {
		check(r.MinHold <= server.QuorumTTL, "--min-hold %v: on a quorum it must be at most %v", r.MinHold,
			server.QuorumTTL)
	}
	check(r.Owner == "" || r.Slots == 0, "--owner and --slots: only one of them can be given, as the holders of slots do not exclude each other")
	check(r.OnWanted == "" || wantedSignals[r.OnWanted] != nil, "--on-wanted %q: it must be %s", r.OnWanted,
		strings.Join(wantedNames(), ", "))
	check(r.OnWanted == "" || r.Slots == 0, "--on-wanted and --slots: only one of them can be given, as any slot will do")
	check(r.OnWanted == "" || !r.IsQuorum(), "--on-wanted: no master of a quorum knows who waits")
	check(r.Replace >= 0, "--replace %v: it must not be negative", r.Replace)
	check(r.Replace == 0 || r.Slots == 0 && !r.Shared, "--replace: it needs a lock that one holds alone, so neither --slots nor --shared")
	check(r.Replace == 0 || !r.Nonblock, "--replace and --nonblock: only one of them can be given, as the holder is given time")
	check(r.Replace == 0 || !r.IsQuorum(), "--replace: no master of a quorum knows whom to ask")
	r.waitOptions.check(&c)
	r.logOptions.check(&c)
	r.Connection.Check(&c)
	return c.Err()
}

func wantedNames() []string { return slices.Sorted(maps.Keys(wantedSignals)) }

// lookUp finds a program as a shell does, before the wait for the lock.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return "", cli.Exitf(cli.ExitNotFound, "%s is in the current directory, which the PATH names: write %s", name,
			filepath.Join(".", name))
	case errors.Is(err, exec.ErrNotFound) && !strings.ContainsRune(name, filepath.Separator):
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
				return "", cli.Exitf(cli.ExitNotRunnable, "%s may not be run", filepath.Join(dir, name))
			}
		}
		return "", cli.Exitf(cli.ExitNotFound, "%s: no such program on the PATH", name)
	case errors.Is(err, os.ErrNotExist):
		return "", cli.Exitf(cli.ExitNotFound, "%s: no such program", name)
	}
	var broken *exec.Error
	if errors.As(err, &broken) {
		err = broken.Err
	}
	return "", cli.Exitf(cli.ExitNotRunnable, "%s may not be run: %w", name, err)
}
