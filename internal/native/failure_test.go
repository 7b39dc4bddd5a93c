package native

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Traps 14 and 45: what a server says differs by version, also in where it says that it happened in a script.
func TestReasons(t *testing.T) {
	for refused, want := range map[string]protocol.Reason{
		"OOM command not allowed when used memory > 'maxmemory'. script: f64cf22c, on @user_script:44.":                        protocol.OutOfMemory,
		"ERR Error running script (call to f_f64cf22c): @user_script:44: -OOM command not allowed":                             protocol.OutOfMemory,
		"ERR Error running script (call to f_f64cf22c): @user_script: 44: READONLY You can't write against a read only slave.": protocol.ReadOnly,
		"READONLY You can't write against a read only replica. script: f64cf22c, on @user_script:1.":                           protocol.ReadOnly,
		"ERR The user executing the script can't run this command or subcommand script: f64cf22c, on @user_script:1.":          protocol.Denied,
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                     protocol.Denied,
		"ERR holdfast: the key p:{1}:clock holds no token of ours script: f64cf22c, on @user_script:1.":                        protocol.Other,
		"ERR unknown command 'EVALSHA'": protocol.Unsupported,
	} {
		if got := reasonOf(refused); got != want {
			t.Errorf("%q: reason %v, want %v", refused, got, want)
		}
	}
	for _, refused := range []string{
		"WRONGTYPE Operation against a key holding the wrong kind of value",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: f64cf22c, on @user_script:44.",
		"ERR Error running script (call to f_f64cf22c): @user_script:44: WRONGTYPE Operation against a key",
		"-WRONGTYPE Operation against a key",
	} {
		if !is(refused, "WRONGTYPE") {
			t.Errorf("%q is not seen", refused)
		}
	}
}

// Valkey 9.1 says the line of a script, and not which script: the one that was sent.
func TestBlameWithoutDigest(t *testing.T) {
	s := loadScripts().ask
	const said = "WRONGTYPE Operation against a key script: on @user_script:1."
	if _, begun := blame(said); !begun {
		t.Error("of an unknown script nothing is known")
	}
	if command, begun := blame(s.named(said)); command != "TIME" || begun {
		t.Errorf("got %q, begun %v", command, begun)
	}
}
