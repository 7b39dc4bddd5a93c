package native

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A refusal that a script raised ends it where it is: what it wrote before stays. Servers say which line that was, and some of
// them nothing else.

// A blamed is what is known of the line of a script that raised a refusal.
type blamed struct {
	commands []string // those of the line: one, as a rule
	keys     []string // of each, as the script calls it
	begun    bool     // something may have been written before
}

// blame reads from a refusal what raised it. Of one that no script raised, nothing was written.
func (s *script) blame(refused string) blamed {
	const mark = "@user_script:"
	at := strings.LastIndex(refused, mark)
	if at < 0 {
		return blamed{}
	}
	number := 0
	if _, err := fmt.Sscan(refused[at+len(mark):], &number); err != nil || s.name == "" {
		return blamed{begun: true}
	}
	lines := compose(files, s.name)
	if number < 1 || number > len(lines) {
		return blamed{begun: true}
	}
	l := lines[number-1]
	commands, keys := l.calls()
	return blamed{commands, keys, l.touched}
}

// calls are the commands of a line that may raise an error, and the word behind each: its key, by a name of script.keys.
func (l line) calls() (commands, keys []string) {
	for _, call := range strings.Split(l.text, "redis.call('")[1:] {
		words := strings.FieldsFunc(call, func(c rune) bool { return !unicode.IsLetter(c) })
		commands = append(commands, words[0])
		if len(words) > 1 {
			keys = append(keys, words[1])
		}
	}
	return commands, keys
}

// before tells whether a script reads these keys before it writes anything for its caller. A key is of one type from the start of
// a script to its end, so one of another type was found then.
func (s *script) before(keys []string) bool {
	for _, key := range keys {
		if !slices.Contains(s.first, key) {
			return false
		}
	}
	return len(keys) > 0
}
