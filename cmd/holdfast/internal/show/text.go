// Package show turns what the library tells of locks into text: tables and details for people, and
// JSON for programs.
//
// Names, labels and owners come from others, and may be meant to deceive. Text and Lines show them
// with nothing that a terminal obeys: no escape sequence, no control character, no mark that turns
// the direction of what follows. In JSON such characters are escaped too.
package show

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
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

// Age shows a duration in at most six characters: 0.4s, 13s, 3m05s, 2h07m, 4d02h, 120d.
func Age(d time.Duration) string {
	d = max(d, 0)
	const day = 24 * time.Hour
	if d < 9950*time.Millisecond {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 100*day:
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}

// ageText shows how long ago something was, and "?" if that is not known.
func ageText(then, now time.Time) string {
	if then.IsZero() {
		return "?"
	}
	return Age(now.Sub(then))
}

// JSON encodes a document. A terminal obeys nothing in it: what it would obey is escaped. An empty
// indent makes one line of it, without its end.
func JSON(document any, indent string) (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(document); err != nil {
		return "", err
	}
	return escapeText(strings.TrimSuffix(text.String(), "\n")), nil
}

// escapeText escapes what is not printable, which in JSON stands in strings alone.
func escapeText(text string) string {
	safe := func(r rune) bool { return r == '\n' || strconv.IsPrint(r) && r != utf8.RuneError }
	if !strings.ContainsFunc(text, func(r rune) bool { return !safe(r) }) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case safe(r):
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}
