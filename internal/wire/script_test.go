package wire

import (
	"context"
	"crypto/sha1" //nolint:gosec // the server names scripts by it
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
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
	if got := Source(example.Files, example.Name, false); got != want {
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

// Traps 14 and 45: what a server says differs by version, also in where it says that it happened in
// a script.
func TestReasonOfRefusal(t *testing.T) {
	for _, c := range []struct {
		want    protocol.Reason
		refused string
	}{
		{protocol.OutOfMemory, "OOM command not allowed when used memory > 'maxmemory'. script: f64cf22c, on @user_script:44."},
		{protocol.OutOfMemory, "ERR Error running script (call to f_f64cf22c): @user_script:44: -OOM command not allowed"},
		{protocol.ReadOnly, "ERR Error running script (call to f_f64cf22c): @user_script: 44: READONLY You can't write against a read only slave."},
		{protocol.ReadOnly, "READONLY You can't write against a read only replica. script: f64cf22c, on @user_script:1."},
		{protocol.Denied, "ERR The user executing the script can't run this command or subcommand script: f64cf22c, on @user_script:1."},
		{protocol.Denied, "NOPERM this user has no permissions to run the 'evalsha' command"},
		{protocol.Denied, "ERR Protocol error: unauthenticated multibulk length"},
		{protocol.Denied, "ERR Protocol error: unauthenticated bulk length"},
		{protocol.Other, "ERR Protocol error: invalid multibulk length"},
		{protocol.Other, "ERR holdfast: the key p:{1}:clock holds no token of ours script: f64cf22c, on @user_script:1."},
		{protocol.Unsupported, "ERR unknown command 'EVALSHA'"},
		{protocol.Unsupported, "ERR Could not find scripting engine 'lua'"},
	} {
		if got := reasonOf(c.refused); got != c.want {
			t.Errorf("%q: reason %v, want %v", c.refused, got, c.want)
		}
	}
	for _, refused := range []string{
		"WRONGTYPE Operation against a key holding the wrong kind of value",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: f64cf22c, on @user_script:44.",
		"ERR Error running script (call to f_f64cf22c): @user_script:44: WRONGTYPE Operation against a key",
		"-WRONGTYPE Operation against a key",
	} {
		if !startsWith(refused, "WRONGTYPE") {
			t.Errorf("%q is not seen", refused)
		}
	}
}

// The cause of a context that ended says nothing of the server, whatever its words are.
func TestScriptFailureAfterCauseThatSpeaksOfPermission(t *testing.T) {
	s := &Script{Op: "lock"}
	const words = "no permission to wait any longer"
	for name, c := range map[string]struct {
		reply Reply
		want  protocol.Reason
	}{
		"cancelled": {Reply{Err: fmt.Errorf("%w: %s", context.Canceled, words)}, protocol.Unreachable},
		"too late":  {Reply{Err: fmt.Errorf("%w: %s", context.DeadlineExceeded, words)}, protocol.NoAnswer},
		"too late to send": {Reply{Err: fmt.Errorf("%w: %s", context.DeadlineExceeded, words), Unsent: true},
			protocol.Unreachable},
		"what a server says": {Reply{Err: errors.New(words)}, protocol.Denied},
	} {
		var failure *protocol.Failure
		if err := s.Failure("n", c.reply, nil); !errors.As(err, &failure) || failure.Reason != c.want {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

// Trap 30: nothing computes SHA-1 at run time, so the digest is a constant.
func TestProbeDigest(t *testing.T) {
	sum := sha1.Sum([]byte(Source(probeFiles, "ready", false))) //nolint:gosec // as above
	if got := hex.EncodeToString(sum[:]); got != probeDigest {
		t.Errorf("the digest of ready.lua is %s, not %s", got, probeDigest)
	}
}

// A not-after is the earliest that the server's clock can show at a local time. An old answer gives
// none.
func TestClockNotAfter(t *testing.T) {
	var c Clock
	now := time.Now()
	if _, ok := c.NotAfter(now); ok {
		t.Error("known before the first answer")
	}
	c.Observe(1_795_231_125_887_127, now)
	if got, ok := c.NotAfter(now.Add(time.Second)); !ok || got != "1795231126887127" {
		t.Errorf("a second later: %s, %v", got, ok)
	}
	if _, ok := c.NotAfter(now.Add(fresh + time.Second)); ok {
		t.Error("told from an old answer")
	}
}

// Scripts compare numbers as text: sixteen digits, whatever the number (trap 40).
func TestDigits16(t *testing.T) {
	for n, want := range map[int64]string{0: "0000000000000000", -5: "0000000000000000", 7: "0000000000000007",
		1_795_231_125_887_127: "1795231125887127", 1<<53 - 1: "9007199254740991"} {
		if got := Digits16(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
