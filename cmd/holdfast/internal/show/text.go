package show

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// mostMarks is how many combining marks may follow each other: some letters have three.
const mostMarks = 4

// Text shows a text of others. A plain text stays as it is. Any other is quoted as in Go, so that
// nobody can take it for a plain one.
func Text(s string) string {
	if isPlain(s) {
		return s
	}
	var out strings.Builder
	out.WriteByte('"')
	escape(&out, s, false)
	out.WriteByte('"')
	return out.String()
}

// Lines shows the text of a message, such as an error that contains texts of others. Characters
// that a terminal would obey are escaped, except for the end of a line.
func Lines(s string) string {
	var out strings.Builder
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		escape(&out, line, true)
	}
	return out.String()
}

// isPlain reports whether a text can be shown as it is, and taken for nothing else.
func isPlain(s string) bool {
	if s == "" || s[0] == ' ' || s[len(s)-1] == ' ' || strings.ContainsAny(s, "\"\\") {
		return false
	}
	marks := mostMarks // none at the beginning: it would change the character before the text
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size < 2 {
				return false
			}
		}
		if marks = marksAfter(marks, r); !strconv.IsPrint(r) || marks > mostMarks {
			return false
		}
	}
	return true
}

// escape writes s with all characters escaped that are not printable. Quotes and backslashes are
// escaped too, unless they are to be kept.
func escape(out *strings.Builder, s string, keep bool) {
	marks := mostMarks
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		marks = marksAfter(marks, r)
		switch {
		case r == utf8.RuneError && size == 1, !strconv.IsPrint(r), marks > mostMarks, (r == '"' || r == '\\') && !keep:
			quoted := strconv.QuoteToASCII(s[:size])
			out.WriteString(quoted[1 : len(quoted)-1])
			marks = mostMarks
		default:
			out.WriteRune(r)
		}
		s = s[size:]
	}
}

// marksAfter counts the combining marks that follow each other.
func marksAfter(before int, r rune) int {
	if unicode.Is(unicode.M, r) {
		return before + 1
	}
	return 0
}

// cutText shortens a shown text to a number of columns.
func cutText(s string, columns int) string {
	return ansi.Truncate(s, max(columns, 1), "…")
}
