package protocol

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a\nb\xff", true}, {"**", "x", true},
		{"a", "a", true}, {"a", "b", false}, {"a", "ab", false}, {"ab", "a", false},
		{"order:*", "order:42", true}, {"order:*", "order", false}, {"*:42", "order:42", true},
		{"*:42", "order:421", false},
		{"*a*b", "xaxbxab", true}, {"*a*b", "xaxbxac", false}, {"a*a", "a", false},
		{"?", "a", true}, {"?", "", false}, {"?", "é", false}, {"??", "é", true},
		{"[abc]", "b", true}, {"[abc]", "d", false}, {"[^abc]", "d", true}, {"[^abc]", "a", false},
		{"[a-c]x", "bx", true}, {"[c-a]x", "bx", true}, {"[a-c]x", "dx", false}, {"[^a-c]", "b", false},
		{`[\]]`, "]", true}, {`[\^]`, "^", true}, {"[a", "a", true}, {"[a", "b", false}, {"[", "[", false},
		{"[^", "x", true}, {"[]a", "a", false},
		{`\*`, "*", true}, {`\*`, "a", false}, {`\`, `\`, true}, {`a\`, `a\`, true}, {`\a`, "a", true},
		{"[a-]", "-", false}, {"[a-]", "a", true}, {"[a-]", "_", true},
	} {
		if got := Match(c.pattern, c.text); got != c.want {
			t.Errorf("%q of %q: %v", c.pattern, c.text, got)
		}
	}
	long := strings.Repeat("a", 10_000)
	if Match(strings.Repeat("a*", 1000)+"b", long) { // it does not take for ever either
		t.Error("matched")
	}
}

// FuzzEscapeGlob: an escaped text matches itself, and nothing panics.
func FuzzEscapeGlob(f *testing.F) {
	for _, text := range []string{"", "a", "*", `\`, "[a-z]", "[^", "a]", "\xff\x00", "{}*?"} {
		f.Add(text, "x")
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		if !Match(EscapeGlob(text), text) || text != other && Match(EscapeGlob(text), other) {
			t.Errorf("%q as %q", text, EscapeGlob(text))
		}
		Match(text, other)
	})
}

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }
