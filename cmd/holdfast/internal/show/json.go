package show

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
