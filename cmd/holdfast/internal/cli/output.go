package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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

// AddFlags adds the flag, and has the command show what it shows on its streams. Formats are those
// that the command has.
func (o *Output) AddFlags(cmd *cobra.Command, formats ...string) {
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { o.Out, o.Err = cmd.OutOrStdout(), cmd.ErrOrStderr() }
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

// Terminal returns the file behind a reader or a writer if it is a terminal, and else nil.
func Terminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && f != nil && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// PlainWidth is the width of help that does not go to a terminal.
const PlainWidth = 80

// minWidth is the least that text is filled to: in less, each word would have a line of its own.
const minWidth = 40

// Width returns the width of the terminal behind a writer, but at least 40 columns. It returns
// PlainWidth if there is no terminal.
func Width(out io.Writer) int {
	if f := Terminal(out); f != nil {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return max(width, minWidth)
		}
	}
	return PlainWidth
}

// Wrap fills each paragraph of a text to a width. A paragraph with a line that begins with a space,
// such as a list or code, stays as it is. A word that is longer than the width is not split.
func Wrap(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") {
			continue
		}
		var out strings.Builder
		column := 0
		for word := range strings.FieldsSeq(p) {
			n := utf8.RuneCountInString(word)
			switch {
			case column == 0: // the first word of a line
			case column+1+n > width:
				out.WriteByte('\n')
				column = 0
			default:
				out.WriteByte(' ')
				column++
			}
			out.WriteString(word)
			column += n
		}
		paragraphs[i] = out.String()
	}
	return strings.Join(paragraphs, "\n\n")
}
