package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var errInterrupted = errors.New("interrupted")

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:               "holdfast",
		Short:             "Distributed locks on Redis and Valkey",
		Example:           rootExample,
		Version:           versionLine(), // --version
		SilenceErrors:     true,          // run prints them
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // newCompletion has exit codes
		Args:              unknownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	setHelp(root)
	// Help shows each group in the order of the alphabet.
	addGroup(root, "Hold a lock:", newAcquire(), newCheck(), newElect(), newLatch(), newRelease(), newRenew(), newRun(), newWait())
	addGroup(root, "See and act:", newBreak(), newDeadlocks(), newDoctor(), newEvict(), newInspect(), newLs(), newQuorum(), newServe(), newTop(), newWatch())
	addGroup(root, "Try it:", newDemo(), newDev())
	root.AddCommand(newCompletion(), newURLs(), newVersion())
	root.AddCommand(newKeeper(), newMan(), newWorker()) // hidden
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = knownTopic
			c.Long = "Print the help of a command or a topic, as its --help does."
		}
	}
	return root
}

const rootExample = `  holdfast dev                           # a server in memory
  holdfast run -v nightly -- sleep 20    # in two other terminals
  holdfast serve                         # a page that shows them`

// addGroup adds commands that help shows under one title.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range commands {
		c.GroupID = title
	}
	root.AddCommand(commands...)
}

// knownTopic refuses help about an unknown command.
func knownTopic(help *cobra.Command, args []string) error {
	if about, rest, _ := help.Root().Find(args); len(rest) > 0 {
		return unknownCommand(about, rest)
	}
	return nil
}

// unknownCommand refuses a first argument that names no command, and suggests commands.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{fmt.Errorf("unknown command %q%s (see %s --help)", args[0], suggestion(cmd, args[0], ""), cmd.CommandPath())}
}

// flagError is a usageError about a flag. It suggests flags in place of one that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	suggested := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		// Cobra suggests commands only, so each flag is presented to it as a command.
		flags := &cobra.Command{}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			flags.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
		})
		suggested = suggestion(flags, unknown.GetSpecifiedName(), "--")
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = invalidValue(invalid)
	}
	return &usageError{fmt.Errorf("%w%s (see %s --help)", withoutURL(err), suggested, cmd.CommandPath())}
}

// suggestion is the part of an error that names the commands below cmd that are spelled like typed.
// Of short names, two letters are most of the word: only those with its first letter or its end
// are like it.
func suggestion(cmd *cobra.Command, typed, prefix string) string {
	cmd.SuggestionsMinimumDistance = 2
	names := slices.DeleteFunc(cmd.SuggestionsFor(typed), func(name string) bool {
		return typed == "" || name[0] != typed[0] && !strings.HasSuffix(name, typed)
	})
	if len(names) == 0 {
		return ""
	}
	return ", did you mean " + prefix + strings.Join(names, " or "+prefix) + "?"
}

// withoutURL is an error about a flag without the URL in it: the URL may hold a password.
func withoutURL(err error) error {
	text, _, found := strings.Cut(err.Error(), "://")
	if !found {
		return err
	}
	return errors.New(text + "://...")
}

// invalidValue names the flag and its value, and says what the flag takes.
func invalidValue(invalid *pflag.InvalidValueError) error {
	name, value := invalid.GetFlag().Name, invalid.GetValue()
	if strings.Contains(value, "://") {
		return fmt.Errorf("--%s does not take a URL", name)
	}
	why := errors.Unwrap(invalid)
	var number *strconv.NumError
	switch {
	case !errors.As(why, &number):
	case number.Func == "ParseBool":
		why = errors.New("it must be true or false")
	case errors.Is(number.Err, strconv.ErrRange):
		why = errors.New("there is no such large number here")
	default:
		why = errors.New("it must be a whole number")
	}
	return fmt.Errorf("--%s %q: %w", name, value, why)
}

// noArgs is cobra.NoArgs with a usageError.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0])}
	}
	return nil
}

// interruptible returns a context that the first signal ends, with errInterrupted as its cause. The
// second signal has its default effect.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&exitError{(&signalError{s}).code(), errInterrupted})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
