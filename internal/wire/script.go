package wire

import (
	"io/fs"
	"strings"
)

// A Script is one operation at a server. Its text is the file lua/NAME.lua of Files.
//
// A script of which only Op is set stands for a plain command.
type Script struct {
	Op     string // the operation, as errors name it
	Name   string // of its file
	Source string // as it is sent
	Digest any    // hex of the SHA-1 of Source; boxed once
	Files  fs.FS

	// NoEvict has the script keep its keys from eviction: see Source.
	NoEvict bool

	Keys  []string // what the script calls its KEYS; a script for many names has as many keys for each name
	First []string // the keys that it reads before it writes anything for its caller; writes for others do not count
}

// A sourceLine is a line of a script, as it goes over the wire.
type sourceLine struct {
	text    string
	touched bool // when the line runs, something may have been written already
}

// Source returns the text of the script lua/NAME.lua as it goes over the wire: includes resolved,
// comments and indentation cut. With noEvict, a line "--@noevict KEY" is the command that keeps the
// key from eviction; else it is a comment.
func Source(files fs.FS, name string, noEvict bool) string {
	var out strings.Builder
	for _, l := range compose(files, name, noEvict) {
		out.WriteString(l.text)
		out.WriteByte('\n')
	}
	return out.String()
}

// compose reads a script. "--@include NAME" joins another file. The lines between "--@untouched"
// and "--@touched" run before anything is written.
func compose(files fs.FS, name string, noEvict bool) (lines []sourceLine) {
	data, err := fs.ReadFile(files, "lua/"+name+".lua")
	if err != nil {
		panic("holdfast: script not embedded: " + err.Error()) // a broken build
	}
	touched := true
	for text := range strings.Lines(string(data)) {
		text = strings.TrimSpace(text)
		include, included := strings.CutPrefix(text, "--@include ")
		key, keeps := strings.CutPrefix(text, "--@noevict ")
		switch {
		case included:
			lines = append(lines, compose(files, include, noEvict)...)
		case keeps && noEvict:
			lines = append(lines, sourceLine{"redis.call('" + bless + "', 'SET', " + key + ", 'NO-EVICT')", touched})
		case text == "--@untouched":
			touched = false
		case text == "--@touched":
			touched = true
		case text != "" && !strings.HasPrefix(text, "--"):
			lines = append(lines, sourceLine{text, touched})
		}
	}
	return lines
}

// ByDigest makes words the command that runs a script by its digest. The first two words are free
// for that; the number of keys, the keys and the arguments follow.
func (s *Script) ByDigest(words []any) []any {
	words[0], words[1] = "EVALSHA", s.Digest
	return words
}

// Whole returns the command that runs the same with the text of the script, for a server that does
// not know it: after a restart, a fail-over or SCRIPT FLUSH. It is a copy, as a store may keep what
// it was given.
func (s *Script) Whole(words []any) []any {
	whole := append([]any(nil), words...)
	whole[0], whole[1] = "EVAL", s.Source
	return whole
}

// IsUnknownScript reports whether a server refused because it does not know the script. It has done
// nothing, so sending the script whole is no repetition.
func IsUnknownScript(reply Reply) bool {
	return reply.Refused != "" && startsWith(reply.Refused, "NOSCRIPT")
}

// KeysIn returns the KEYS in the words of a command that runs a script.
func KeysIn(words []any) []any {
	n, _ := words[2].(int)
	return words[3 : 3+n]
}
