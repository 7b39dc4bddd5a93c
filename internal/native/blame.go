package native

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A refusal that a script raised ends it where it is: what it wrote before stays. Servers say the script and the line, and some of
// them nothing else.

// blame reads from a refusal which commands it can be about, and whether something may have been written before. Of one that no
// script raised, nothing was.
func blame(refused string) (commands string, begun bool) {
	at := strings.LastIndex(refused, "@user_script:")
	if at < 0 {
		return "", false
	}
	text := strings.TrimLeft(refused[at+len("@user_script:"):], " ")
	end := 0
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	line, err := strconv.Atoi(text[:end])
	if err != nil {
		return "", true
	}
	for name, digest := range digests {
		if !strings.Contains(refused, digest) {
			continue
		}
		if lines := compose(files, name); line >= 1 && line <= len(lines) {
			return lines[line-1].commands(), lines[line-1].touched
		}
	}
	return "", true
}

// named puts the digest into a refusal that says the line alone, as those of Valkey 9.1 do.
func (s *script) named(refused string) string {
	if refused == "" {
		return ""
	}
	return strings.Replace(refused, "script: on @user_script:", fmt.Sprintf("script: %v, on @user_script:", s.sha), 1)
}

// commands are the names of the commands in a line: one, as a rule.
func (l line) commands() string {
	var names []string
	for _, part := range strings.Split(l.text, "call('")[1:] {
		if name, _, ok := strings.Cut(part, "'"); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}
