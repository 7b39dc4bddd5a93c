package wire

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

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
