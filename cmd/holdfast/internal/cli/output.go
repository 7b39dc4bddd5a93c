package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// The formats of what a command shows.
const (
	FormatTable = "table"
	FormatJSON  = "json"  // one document
	FormatLines = "jsonl" // a document in each line
)

// ListFormats are the formats of a command that shows several things.
var ListFormats = []string{FormatTable, FormatJSON, FormatLines}

// An Output says how a command shows what it was told.
type Output struct {
	Format string
	Out    io.Writer
	Err    io.Writer
}

// AddFlags adds the flag. Formats are those that the command has.
func (o *Output) AddFlags(cmd *cobra.Command, formats ...string) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", FormatTable, "`FORMAT`: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// Check notes a format that is none of those that the command has.
func (o *Output) Check(list *Checklist, formats ...string) {
	list.Check(slices.Contains(formats, o.Format), "--output %q: it must be one of %s", o.Format,
		strings.Join(formats, ", "))
}

// Page is as wide as the terminal, and in colors if that may have them.
func (o *Output) Page() show.Page {
	page := show.Page{Out: o.Out}
	if Terminal(o.Out) != nil {
		page.Width, page.Colors = Width(o.Out), show.Colors()
	}
	return page
}

// PrintDocument prints a value of package lockinfo as a document.
func (o *Output) PrintDocument(value any) error {
	indent := ""
	if o.Format == FormatJSON {
		indent = "  "
	}
	text, err := show.JSON(lockinfo.Document{Value: value}, indent)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Out, text)
	return err
}

// Note prints a line that is no part of what was asked for.
func (o *Output) Note(format string, args ...any) {
	_, _ = fmt.Fprintf(o.Err, "holdfast: "+format+"\n", args...)
}
