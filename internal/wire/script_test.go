package wire

import (
	"slices"
	"testing"
	"testing/fstest"
)

// A script with an include, and two lines that run before anything is written.
var example = &Script{Op: "lock", Name: "ask", Keys: []string{"state", "line"}, First: []string{"line"},
	Files: fstest.MapFS{
		"lua/ask.lua": {Data: []byte("-- A contract.\n--@include time\n  redis.call('SET', state, now)\n" +
			"return redis.call('GET', line) .. redis.call('GET', other)\n")},
		"lua/time.lua": {Data: []byte("--@untouched\nlocal now = redis.call('TIME')\n" +
			"local has = redis.call('GET', line)\n--@touched\n")},
	}}

// Comments, marks and indentation do not go over the wire.
func TestSource(t *testing.T) {
	const want = "local now = redis.call('TIME')\nlocal has = redis.call('GET', line)\n" +
		"redis.call('SET', state, now)\n" +
		"return redis.call('GET', line) .. redis.call('GET', other)\n"
	if got := Source(example.Files, example.Name); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestScriptUnnamedKey(t *testing.T) {
	if got := example.Unnamed(); len(got) != 1 ||
		got[0] != "return redis.call('GET', line) .. redis.call('GET', other)" {
		t.Errorf("got %q", got)
	}
}

// Valkey 9.1 says the line of a script, and not which script: the one that was sent.
func TestScriptBlameWithoutDigest(t *testing.T) {
	const refused = "WRONGTYPE Operation against a key script: on @user_script:"
	if !(&Script{}).blame(refused + "1.").begun {
		t.Error("of an unknown script nothing is known")
	}
	for number, want := range map[string]blamedLine{
		"1.":    {commands: []string{"TIME"}},
		"2.":    {commands: []string{"GET"}, keys: []string{"line"}},
		"3.":    {commands: []string{"SET"}, keys: []string{"state"}, begun: true},
		"9999.": {begun: true},
	} {
		got := example.blame(refused + number)
		if !slices.Equal(got.commands, want.commands) || !slices.Equal(got.keys, want.keys) || got.begun != want.begun {
			t.Errorf("line %s: got %+v, want %+v", number, got, want)
		}
	}
}

// The text of a script is sent in a copy: a store may keep what it was given.
func TestScriptWholeIsACopy(t *testing.T) {
	s := &Script{Source: "return 1", Digest: "abc"}
	words := s.ByDigest([]any{nil, nil, 1, "key", "arg"})
	whole := s.Whole(words)
	if words[0] != "EVALSHA" || words[1] != "abc" || whole[0] != "EVAL" || whole[1] != "return 1" || whole[4] != "arg" {
		t.Errorf("got %v and %v", words, whole)
	}
	if keys := KeysIn(whole); len(keys) != 1 || keys[0] != "key" {
		t.Errorf("keys %v", keys)
	}
}
