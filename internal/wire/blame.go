package wire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A refusal that a script raised ends the script where it is: what it wrote before stays. Servers
// say the number of the line, and some say nothing else.

// A blamedLine is the line of a script that raised a refusal, as far as it is known.
type blamedLine struct {
	commands []string // those of the line: one, as a rule
	keys     []string // of each command, as the script calls it
	begun    bool     // something may have been written before
}

// blame reads from a refusal which line raised it. If no script raised it, nothing was written.
func (s *Script) blame(refused string) blamedLine {
	const mark = "@user_script:"
	at := strings.LastIndex(refused, mark)
	if at < 0 {
		return blamedLine{}
	}
	number := 0
	if _, err := fmt.Sscan(refused[at+len(mark):], &number); err != nil || s.Name == "" {
		return blamedLine{begun: true}
	}
	lines := compose(s.Files, s.Name)
	if number < 1 || number > len(lines) {
		return blamedLine{begun: true}
	}
	l := lines[number-1]
	commands, keys := l.calls()
	return blamedLine{commands, keys, l.touched}
}

// calls returns the commands of a line that may raise an error, and the word behind each command:
// its key, by a name of Script.Keys.
func (l sourceLine) calls() (commands, keys []string) {
	for _, call := range strings.Split(l.text, "redis.call('")[1:] {
		words := strings.FieldsFunc(call, func(c rune) bool { return !unicode.IsLetter(c) })
		commands = append(commands, words[0])
		if len(words) > 1 {
			keys = append(keys, words[1])
		}
	}
	return commands, keys
}

// Unnamed returns the lines with a command whose key the script does not call by one of Keys: of
// those a refusal could not say which key it is about. A test of each format checks that there are
// none.
func (s *Script) Unnamed() (lines []string) {
	for _, l := range compose(s.Files, s.Name) {
		commands, keys := l.calls()
		if slices.Equal(commands, []string{"TIME"}) {
			continue
		}
		if len(keys) != len(commands) || slices.ContainsFunc(keys, func(key string) bool {
			return !slices.Contains(s.Keys, key)
		}) {
			lines = append(lines, l.text)
		}
	}
	return lines
}

// readsFirst reports whether the script reads these keys before it writes anything for its caller.
// A key keeps its type from the start of a script to its end, so a key of another type was found
// then.
func (s *Script) readsFirst(keys []string) bool {
	for _, key := range keys {
		if !slices.Contains(s.First, key) {
			return false
		}
	}
	return len(keys) > 0
}
