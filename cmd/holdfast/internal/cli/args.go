package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
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
	// With two arguments before it, the flag is likely one of a command.
	if unknown != nil && suggested == "" && strings.Contains(cmd.Use, "-- CMD") && cmd.Flags().NArg() > 1 {
		suggested = fmt.Sprintf(", is -- missing before %q?", cmd.Flags().Arg(1))
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

// A Duration is a flag of seconds, as those of flock, or of a duration: 5, 0.5, 5s.
type Duration time.Duration

// DurationVar adds a flag with a duration.
func DurationVar(flags *pflag.FlagSet, to *time.Duration, name, short string, value time.Duration, usage string) {
	*to = value
	flags.VarP((*Duration)(to), name, short, usage)
}

// Set implements pflag.Value.
func (d *Duration) Set(text string) error {
	parsed, err := ParseDuration(text)
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}

// String implements pflag.Value. It is empty for 0, which is no default to show.
func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return durationText(time.Duration(*d))
}

// Type implements pflag.Value.
func (d *Duration) Type() string { return "duration" }

// durationText is a duration without units that are 0: 5m and not 5m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ParseDuration reads seconds or a duration. More than can be counted is the most.
func ParseDuration(text string) (time.Duration, error) {
	if text != "" && strings.Trim(text, "+-.0123456789") == "" {
		if seconds, err := strconv.ParseFloat(text, 64); err == nil {
			const most = float64(math.MaxInt64 / int64(time.Second))
			return time.Duration(min(max(seconds, -most), most) * float64(time.Second)), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	return 0, errors.New("it must be seconds or a duration, such as 5, 0.5 or 2m")
}

// The limits of the library.
const (
	LeastTTL = 100 * time.Millisecond
	MostTTL  = 24 * time.Hour
	MaxText  = 1 << 10
)

// A Checklist collects all that is wrong with the arguments of a command.
type Checklist []error

// Check notes what is wrong, unless ok.
func (c *Checklist) Check(ok bool, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Errorf(format, args...))
	}
}

// Err returns nil, or a *UsageError with all that is wrong.
func (c Checklist) Err() error {
	if len(c) == 0 {
		return nil
	}
	return Usage(errors.Join(c...))
}

// CheckName notes a bad NAME.
func CheckName(list *Checklist, name string) {
	list.Check(name != "" && len(name) <= MaxText, "NAME of %d bytes: it must have 1 to %d", len(name), MaxText)
}

// CheckPattern notes a bad PATTERN.
func CheckPattern(list *Checklist, pattern string) {
	list.Check(len(pattern) <= MaxText, "PATTERN of %d bytes: it must have at most %d", len(pattern), MaxText)
}

// CheckTTL notes what is wrong with --ttl.
func CheckTTL(list *Checklist, c *Connection, ttl time.Duration) {
	list.Check(ttl >= LeastTTL && ttl <= MostTTL, "--ttl %v: it must be %v to %v", ttl, LeastTTL, MostTTL)
	list.Check(!c.IsQuorum() || ttl <= server.QuorumTTL, "--ttl %v: on a quorum it must be at most %v", ttl,
		server.QuorumTTL)
}
