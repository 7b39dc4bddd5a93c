package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoArgs is cobra.NoArgs with a UsageError.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// OneName takes one argument into name.
func OneName(name *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("%s takes one NAME, got %s", cmd.CommandPath(), CountArgs(args))
		}
		*name = args[0]
		return nil
	}
}

// OnePattern takes no argument, or one into pattern.
func OnePattern(pattern *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Usagef("%s takes one PATTERN, got %s; quote it, so that the shell leaves it alone", cmd.CommandPath(),
				CountArgs(args))
		}
		if len(args) == 1 {
			*pattern = args[0]
		}
		return nil
	}
}

// CountArgs says how many arguments were given, and quotes the first.
func CountArgs(args []string) string {
	const quoted = 3
	var text strings.Builder
	fmt.Fprintf(&text, "%d arguments", len(args))
	if len(args) == 1 {
		text.Reset()
		text.WriteString("1 argument")
	}
	for i, arg := range args[:min(len(args), quoted)] {
		fmt.Fprintf(&text, "%s %q", []string{":", ","}[min(i, 1)], arg)
	}
	if len(args) > quoted {
		text.WriteString(", ...")
	}
	return text.String()
}

// UnknownCommand refuses a first argument that names no command, and suggests commands.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Usagef("unknown command %q%s (see %s --help)", args[0], suggestNames(cmd, args[0], ""), cmd.CommandPath())
}

// FlagError is a UsageError about a flag. It suggests flags in place of one that does not exist.
func FlagError(cmd *cobra.Command, err error) error {
	suggested := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		// Cobra suggests commands only, so each flag is presented to it as a command.
		flags := &cobra.Command{}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			flags.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
		})
		suggested = suggestNames(flags, unknown.GetSpecifiedName(), "--")
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = invalidValue(invalid)
	}
	return Usagef("%w%s (see %s --help)", withoutURL(err), suggested, cmd.CommandPath())
}

// suggestNames is the part of an error that names the commands below cmd that are spelled like
// typed. Of short names, two letters are most of the word: only those with its first letter or its
// end are like it.
func suggestNames(cmd *cobra.Command, typed, prefix string) string {
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
