package server

import (
	"slices"
	"strings"
	"testing"
)

func TestMembers(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want []string
	}{
		"one server":       {"redis://a", nil},
		"three":            {"quorum:redis://a,redis://b,redis://c", []string{"redis://a", "redis://b", "redis://c"}},
		"commas of a URL":  {"quorum:redis://a?x=1,2,redis://b", []string{"redis://a?x=1,2", "redis://b"}},
		"nothing":          {"quorum:", []string{""}},
		"another's commas": {"redis://a,b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Members(c.raw)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(got) > 1 && Quorum(got) != c.raw {
				t.Errorf("joined again: %q", Quorum(got))
			}
		})
	}
}

func TestQuorumIsChecked(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"three": {"quorum:redis://a,redis://b,redis://c", ""},
		"two":   {"quorum:redis://a,redis://b", "2 masters: a quorum has 3"},
		"four":  {"quorum:redis://a,redis://b,redis://c,redis://d", "4 masters: a quorum has 3"},
		"one":   {"quorum:redis://a", "1 masters: a quorum has 3"},
		"none":  {"quorum:", "master 1 of 1: it is not a URL"},
		"wrong": {"quorum:redis://a,http://b,redis://c", "master 2 of 3: its scheme is unknown"},
		"bare": {"quorum:redis://a,b,redis://c",
			`master 1 of 2: redis://...: it names more than one host`}, // and not "2 masters"
		"words": {"quorum:a,b,c", `master 1 of 1: it is not a URL`},
		"twice": {"quorum:redis://a,redis://b,redis://a", "master 3 of 3: its URL is given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(c.raw, TLS{})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The passwords of all masters are hidden.
func TestQuorumIsRedacted(t *testing.T) {
	const raw = "quorum:redis://u:secret@a,redis://b,redis://:hidden@c"
	for _, text := range []string{Redact(raw), WithoutPasswords(raw)} {
		if strings.Contains(text, "secret") || strings.Contains(text, "hidden") ||
			!strings.Contains(text, "redis://b,") {
			t.Errorf("got %s", text)
		}
	}
	if text := Redact(raw); text != "quorum:redis://***@a,redis://b,redis://***@c" {
		t.Errorf("got %s", text)
	}
}
