package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// plainWidth is the width of help that does not go to a terminal.
const plainWidth = 80

// setHelp wraps the help of all commands at the width of the terminal that it goes to.
func setHelp(root *cobra.Command) {
	usage := root.UsageTemplate()
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		width := widthOf(out)
		text := cmd.Long
		if text == "" {
			text = cmd.Short
		}
		if cmd.IsAdditionalHelpTopicCommand() {
			_, _ = fmt.Fprintln(out, wrapped(text, width))
			return
		}
		root.SetUsageTemplate(strings.ReplaceAll(usage, ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width)))
		_, _ = fmt.Fprintf(out, "%s\n\n%s", wrapped(text, width), cmd.UsageString())
	})
}

// widthOf is the width of the terminal that a stream goes to.
func widthOf(out io.Writer) int {
	if f := terminal(out); f != nil {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return max(width, 40)
		}
	}
	return plainWidth
}

// wrapped breaks the lines of a text anew. Paragraphs with a line that begins with a space stay as
// they are.
func wrapped(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") {
			continue
		}
		var out strings.Builder
		column := 0
		for _, word := range strings.Fields(p) {
			n := utf8.RuneCountInString(word)
			switch {
			case column == 0:
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
