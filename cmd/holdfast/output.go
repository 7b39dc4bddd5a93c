package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// The formats of what a command shows.
const (
	formatTable = "table"
	formatJSON  = "json"  // one document
	formatLines = "jsonl" // a document in each line
)

var listFormats = []string{formatTable, formatJSON, formatLines}

// An output says how a command shows what it was told.
type output struct {
	Format string
	Out    io.Writer
	Err    io.Writer
}

// flags adds the flag. Formats are those that the command has.
func (o *output) flags(cmd *cobra.Command, formats ...string) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", formatTable, "`FORMAT`: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// check notes a format that is none of those that the command has.
func (o *output) check(list *checklist, formats ...string) {
	list.check(slices.Contains(formats, o.Format), "--output %q: it must be one of %s", o.Format, strings.Join(formats, ", "))
}

// page is as wide as the terminal, and in colors if that may have them.
func (o *output) page() show.Page {
	page := show.Page{Out: o.Out}
	if terminal(o.Out) != nil {
		page.Width, page.Colors = widthOf(o.Out), show.Colors()
	}
	return page
}

// document prints a value of package lockinfo as a document.
func (o *output) document(value any) error {
	indent := ""
	if o.Format == formatJSON {
		indent = "  "
	}
	text, err := show.JSON(lockinfo.Document{Value: value}, indent)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Out, text)
	return err
}

// isClosed reports whether a standard output was closed when this process began. The runtime has
// opened the null device in its place, for reading too. A shell opens it for writing alone.
func isClosed(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	opened, err := f.Stat()
	null, failed := os.Stat(os.DevNull)
	if err != nil || failed != nil || !os.SameFile(opened, null) {
		return false
	}
	_, err = f.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// note prints a line that is no part of what was asked for.
func (o *output) note(format string, args ...any) {
	_, _ = fmt.Fprintf(o.Err, "holdfast: "+format+"\n", args...)
}

// checkName notes a bad NAME.
func checkName(list *checklist, name string) {
	list.check(name != "" && len(name) <= maxText, "NAME of %d bytes: it must have 1 to %d", len(name), maxText)
}

// oneName takes one argument into name.
func oneName(name *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return &usageError{fmt.Errorf("%s takes one NAME, got %s", cmd.CommandPath(), numArguments(args))}
		}
		*name = args[0]
		return nil
	}
}

// aPattern takes no argument, or one into pattern.
func aPattern(pattern *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return &usageError{fmt.Errorf("%s takes one PATTERN, got %s; quote it, so that the shell leaves it alone", cmd.CommandPath(), numArguments(args))}
		}
		if len(args) == 1 {
			*pattern = args[0]
		}
		return nil
	}
}

// numArguments says how many arguments were given, and quotes the first.
func numArguments(args []string) string {
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
