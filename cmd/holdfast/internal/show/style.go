package show

import (
	"os"

	"github.com/charmbracelet/x/ansi"
)

// A Style says how important a text is.
type Style int

// The styles of texts.
const (
	Plain   Style = iota
	Faint         // of no importance
	Heading       // of a column
	Good          // as it should be
	Warning       // to be looked at
	Bad           // wrong
)

var styles = map[Style]ansi.Style{
	Faint: ansi.NewStyle().Faint(), Heading: ansi.NewStyle().Bold(),
	Good: ansi.NewStyle().ForegroundColor(ansi.Green), Warning: ansi.NewStyle().ForegroundColor(ansi.Yellow),
	Bad: ansi.NewStyle().ForegroundColor(ansi.Red),
}

// Styled gives a shown text its style.
func (s Style) Styled(text string) string {
	if style, ok := styles[s]; ok && text != "" {
		return style.Styled(text)
	}
	return text
}

// Colors reports whether a terminal may get colors: not if NO_COLOR is set, whatever it says, and
// not if the terminal has none.
func Colors() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}
