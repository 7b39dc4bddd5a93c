package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/store"
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
		"ERR Protocol error: unauthenticated multibulk length":                                                                 protocol.Denied,
		"ERR Protocol error: unauthenticated bulk length":                                                                      protocol.Denied,
		"ERR Protocol error: invalid multibulk length":                                                                         protocol.Other,
		"ERR holdfast: the key p:{1}:clock holds no token of ours script: f64cf22c, on @user_script:1.":                        protocol.Other,
		"ERR unknown command 'EVALSHA'":                                                                                        protocol.Unsupported,
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
	const said = "WRONGTYPE Operation against a key script: on @user_script:1."
	if !(&script{}).blame(said).begun {
		t.Error("of an unknown script nothing is known")
	}
	s := loadScripts().ask
	if b := s.blame(said); !slices.Equal(b.commands, []string{"TIME"}) || b.begun {
		t.Errorf("got %+v", b)
	}
	if !s.blame("WRONGTYPE Operation against a key script: on @user_script:9999.").begun {
		t.Error("of a line that is not there nothing is known")
	}
}

// Every command of the scripts that can raise an error says by a name which key it is about.
func TestKeysOfLines(t *testing.T) {
	all := loadScripts()
	for _, s := range []script{all.ask, all.free, all.renew, all.resume, all.downgrade, all.resize, all.look, all.all, all.latch} {
		for at, l := range compose(files, s.name) {
			commands, keys := l.calls()
			if slices.Equal(commands, []string{"TIME"}) {
				continue
			}
			if len(keys) != len(commands) || slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(s.keys, key) }) {
				t.Errorf("%s:%d: which keys are they in %q?", s.name, at+1, l.text)
			}
		}
	}
}

// A line that is none refuses an ask before anything was done, unless the ask gave another hold back: then that may be over.
func TestForeignLineOfAskThatGivesBack(t *testing.T) {
	at := slices.IndexFunc(compose(files, "ask"), func(l line) bool {
		return l.text == "local waits = self and redis.call('ZSCORE', line, self)"
	})
	refused := fmt.Sprintf("WRONGTYPE Operation against a key script: %s, on @user_script:%d.", digests["ask"], at+1)
	r := New(liar{store.Reply{Refused: refused}}, Config{Prefix: "p", Process: "x", Timeout: time.Second}).Bind(specOf("n"))
	ask := protocol.Ask{Ticket: protocol.Ticket{ID: "0123456789012345678901", Block: 1}, TTL: time.Second, Deadline: time.Now().Add(time.Minute)}
	var foreign *protocol.Foreign
	if _, err := r.Ask(t.Context(), ask); !errors.As(err, &foreign) || foreign.Key != "p:{n}:line" || len(foreign.Or) != 0 {
		t.Errorf("got %v", err)
	}
	ask.Release = &protocol.Ticket{ID: "1123456789012345678901", Block: 1}
	var failure *protocol.Failure
	if _, err := r.Ask(t.Context(), ask); !errors.As(err, &failure) || failure.Reason != protocol.ForeignKey || !failure.Unknown ||
		!strings.Contains(err.Error(), `"p:{n}:line"`) {
		t.Errorf("got %v", err)
	}
}

// The cause of a context that ended says nothing of the server, whatever its words are.
func TestFailureOfCauseThatSpeaksOfPermission(t *testing.T) {
	r := New(nil, Config{Prefix: "p"}).bind(specOf("n"))
	const words = "no permission to wait any longer"
	for name, c := range map[string]struct {
		reply store.Reply
		want  protocol.Reason
	}{
		"cancelled":          {store.Reply{Err: fmt.Errorf("%w: %s", context.Canceled, words)}, protocol.Unreachable},
		"too late":           {store.Reply{Err: fmt.Errorf("%w: %s", context.DeadlineExceeded, words)}, protocol.NoAnswer},
		"too late to send":   {store.Reply{Err: fmt.Errorf("%w: %s", context.DeadlineExceeded, words), Unsent: true}, protocol.Unreachable},
		"what a server says": {store.Reply{Err: errors.New(words)}, protocol.Denied},
	} {
		var failure *protocol.Failure
		if err := r.failure("lock", c.reply); !errors.As(err, &failure) || failure.Reason != c.want {
			t.Errorf("%s: %#v", name, err)
		}
	}
}
