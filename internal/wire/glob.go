package wire

import "strings"

// Literal is the glob pattern of Redis that matches a text and nothing else.
func Literal(text string) string { return literal.Replace(text) }

var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
