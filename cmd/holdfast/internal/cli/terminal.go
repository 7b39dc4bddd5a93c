package cli

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

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
		for _, word := range strings.Fields(p) {
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
