package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

const runLong = `Run a command while this process holds the lock NAME. Others who want it wait, first come, first served.

There is no shell between: the command gets its arguments, standard streams and exit code as they are. It runs in a
process group of its own, which has the terminal if there is one; INT, TERM, HUP, QUIT, USR1 and USR2 are passed on.

The lock is renewed while the command runs, and given back when it has ended. When no renewal succeeds, the command
gets TERM when what is left of the TTL falls below the smaller of --grace and a third of --ttl, and its whole process
group gets KILL before the lock can be another's; at once if the server says that it is another's already. With
--on-lost=term or ignore it may go on running while another holds the lock: that promise is then given up.

The command sees HOLDFAST_NAME, HOLDFAST_TOKEN (grows with every holder: let storage refuse smaller ones),
HOLDFAST_OWNER, HOLDFAST_TTL and HOLDFAST_REDIS (without the password).

Exit codes: the command's own; 128+n if signal n ended it; 64 usage; 69 no server, or one that cannot serve now; 75 held by
another, or waited too long; 76 the lock was lost while the command ran; 77 the server refuses us; 126, 127 the
command may not be run, was not found.`

func newRun() *cobra.Command {
	r := &Run{}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME -- CMD ARGS...",
		Short: "Run a command under a lock",
		Long:  runLong,
		Example: `  holdfast run nightly-report -- ./report.sh
  holdfast run -n --min-hold 50s minutely -- ./tick      # on every host's crontab: one of them runs it
  holdfast run -w 30s deploy -- kubectl apply -f .       # waits half a minute, then exits with 75`,
		DisableFlagsInUseLine: true,
		Args:                  func(cmd *cobra.Command, args []string) error { return r.take(args, cmd.ArgsLenAtDash()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.In, r.Out, r.Err = os.Stdin, os.Stdout, os.Stderr
			if url := os.Getenv("REDIS_URL"); url != "" && !cmd.Flags().Changed("redis") {
				r.Redis = url
			}
			return r.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	r.Redis = defaultURL
	flags.Var(&urls{to: &r.Redis}, "redis", "`URL` of the server: redis://, rediss:// (TLS), unix://, redis+sentinel://, redis+cluster://; else the variable REDIS_URL; given 3, 5, 7 or 9 times, or as quorum:URL,URL,URL: independent masters")
	flags.StringVar(&r.TLS.CA, "tls-ca", "", "file with the certificates of those who may sign the server's")
	flags.StringVar(&r.TLS.Cert, "tls-cert", "", "file with a certificate for the server to see")
	flags.StringVar(&r.TLS.Key, "tls-key", "", "file with its key")
	flags.StringVar(&r.Prefix, "prefix", "holdfast", "of all keys and channels; locks of different prefixes know nothing of each other")
	flags.BoolVarP(&r.Nonblock, "nonblock", "n", false, "do not wait")
	flags.VarP((*patience)(r), "wait", "w", "wait at most so long: `5` (seconds), 0.5, 5s, 2m; 0 is --nonblock")
	flags.IntVarP(&r.Conflict, "conflict-exit-code", "E", exitBusy, "exit code when the lock is held by another, or was waited for too long")
	flags.DurationVar(&r.TTL, "ttl", 15*time.Second, "how long the lock outlives a crash; renewed every third of it")
	flags.DurationVar(&r.MaxHold, "max-hold", 0, "hold the lock no longer than this, whatever the command does; it is lost then")
	flags.DurationVar(&r.MinHold, "min-hold", 0, "keep others out at least so long, even if the command ends sooner")
	flags.StringVar(&r.Owner, "owner", "", "runs of one owner do not exclude each other: --owner \"$HOLDFAST_OWNER\" enters the lock of the outer run")
	flags.StringVar(&r.Label, "label", "", "who this is, for others to read (default: command@host/process)")
	flags.DurationVar(&r.Grace, "grace", 5*time.Second, "how long before the end the command is asked to end; at most a third of --ttl")
	flags.StringVar(&r.OnLost, "on-lost", onLostKill, "what the command gets when the lock is lost: `kill`, term or ignore; only kill keeps the promise that it is gone")
	flags.BoolVarP(&r.Verbose, "verbose", "v", false, "say how long it waited and held")
	_ = cmd.RegisterFlagCompletionFunc("on-lost", cobra.FixedCompletions([]string{onLostKill, onLostTerm, onLostIgnore}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// take sorts the arguments: dash is how many stand before "--", negative if there is none.
func (r *Run) take(args []string, dash int) error {
	problem := ""
	switch {
	case len(args) == 0:
		problem = "no NAME and no command"
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
		return &usageError{errors.New(problem + ": holdfast run [flags] NAME -- CMD ARGS...")}
	}
	r.Name, r.Command = args[0], args[1:]
	return nil
}

// patience reads flock's seconds, or a duration, into Wait and Nonblock.
type patience Run

// Set implements pflag.Value.
func (p *patience) Set(text string) error {
	d, err := time.ParseDuration(text)
	if seconds, e := strconv.ParseFloat(text, 64); e == nil && seconds == seconds {
		d, err = time.Duration(min(max(seconds, -1), 1e9)*float64(time.Second)), nil
	}
	switch {
	case err != nil:
		return errors.New("neither seconds nor a duration, such as 5, 0.5 or 2m")
	case d < 0:
		return errors.New("it must not be negative")
	case d == 0:
		p.Nonblock = true
	}
	p.Wait = d
	return nil
}

// String implements pflag.Value.
func (p *patience) String() string {
	if p.Wait == 0 {
		return ""
	}
	return p.Wait.String()
}

// Type implements pflag.Value.
func (p *patience) Type() string { return "duration" }
