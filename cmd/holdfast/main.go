// Command holdfast runs programs under the locks of the library, and shows what the locks do.
//
//	holdfast run NAME -- CMD ARGS...   runs a command under a lock
//	holdfast elect NAME -- CMD ARGS... keeps a command running on one host of many
//	holdfast once NAME -- CMD ARGS...  runs a command on one host, and gives its result to all
//	holdfast shards NAME -- CMD ...    runs a command for each shard, spread over all hosts
//	holdfast acquire NAME              takes a lock and prints its ticket
//	holdfast renew, release, check     take that ticket
//	holdfast wait NAME                 waits until nobody holds a name
//	holdfast latch set|down|wait NAME  waits until as many processes have come as were set
//	holdfast ls [PATTERN]              lists who holds and who waits
//	holdfast inspect NAME              shows who holds a name, and who waits for it
//	holdfast history NAME              shows who held a name, and when
//	holdfast watch [PATTERN]           tells what changes
//	holdfast top [FILE]                shows all locks on a full screen
//	holdfast serve                     serves a page and figures for Prometheus
//	holdfast break NAME                ends the hold of another process
//	holdfast evict NAME WAITER         takes a waiter out of a queue
//	holdfast deadlocks                 shows callers that wait for each other
//	holdfast dev                       serves from memory, to try run without Redis
//	holdfast demo                      shows processes that share a lock, and a holder that dies
//	holdfast quorum status             tells which masters of a quorum count, and why others do not
//	holdfast doctor                    looks for what endangers a lock, and says what to change
//	holdfast completion SHELL          prints completion for bash, zsh or fish
//	holdfast version                   prints the version
//	holdfast man DIR                   writes pages of man
//
// This package joins the commands, which stand in packages by what a user does: hold, see, act,
// serve and try, below internal. Package cli has what they share, such as exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/act"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/see"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/serve"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/try"
)

func main() {
	redis.SetLogger(noLog{}) // errors are reported; a line for each attempt to connect would hide them
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program without its process: it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	var exit *cli.ExitError
	if silent := errors.As(err, &exit) && exit.Err == nil; err != nil && !silent {
		text := cli.Trim(err.Error())
		if errors.As(err, new(*cli.UsageError)) {
			text = withoutURLs(text, args)
		}
		cli.OutliveReaders() // the exit code tells it too
		// The text may quote texts of others.
		fmt.Fprintf(errs, "holdfast: %s\n", show.Lines(text))
	}
	return cli.ExitCode(err)
}

// withoutURLs is a text about the arguments without the URLs among them: a URL in a wrong place may
// contain a password.
func withoutURLs(text string, args []string) string {
	for _, arg := range args {
		if at := strings.Index(arg, "://"); at >= 0 && at+3 < len(arg) {
			quoted := strconv.Quote(arg[at+1:])
			for _, form := range []string{arg[at+1:], quoted[1 : len(quoted)-1]} {
				text = strings.ReplaceAll(text, form, "//...")
			}
		}
	}
	return text
}

// noLog drops the log of go-redis.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func newRoot() *cobra.Command {
	own := ownVersion()
	root := &cobra.Command{
		Use:               "holdfast",
		Short:             "Distributed locks on Redis and Valkey",
		Version:           versionLine(), // --version
		SilenceErrors:     true,          // run prints them
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // newCompletion has exit codes
		Args:              cli.UnknownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetVersionTemplate("{{.Version}}\n")
	setHelp(root)
	// Help shows each group in the order of the alphabet.
	addGroup(root, "Hold a lock:", hold.Commands())
	addGroup(root, "See and act:", see.Commands(), act.Commands(), serve.Commands(own.number, own.commit))
	addGroup(root, "Try it:", try.Commands())
	root.AddCommand(newCompletion(), newVersion())
	root.AddCommand(&cobra.Command{Use: "urls", Short: "The forms of --redis and REDIS_URL"}) // a topic of help
	root.AddCommand(newMan())                                                                 // hidden
	root.AddCommand(try.HiddenCommands()...)
	readHelp(root, "")
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = knownTopic
			c.Long = "Print the help of a command or a topic, as its --help does."
		}
	}
	return root
}

// addGroup adds commands that help shows under one title.
func addGroup(root *cobra.Command, title string, packages ...[]*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range slices.Concat(packages...) {
		c.GroupID = title
		root.AddCommand(c)
	}
}

// knownTopic refuses help about an unknown command.
func knownTopic(help *cobra.Command, args []string) error {
	if about, rest, _ := help.Root().Find(args); len(rest) > 0 {
		return cli.UnknownCommand(about, rest)
	}
	return nil
}
