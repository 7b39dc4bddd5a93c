package native

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Trap 45: what a server says from inside a script differs by version; the word that counts is found in each.
func TestReasons(t *testing.T) {
	for line, want := range map[string]protocol.Reason{
		"READONLY You can't write against a read only replica.":                                                                                  protocol.ReadOnly,
		"READONLY You can't write against a read only replica. script: 3432, on @user_script:120.":                                               protocol.ReadOnly,
		"ERR Error running script (call to f_34): @user_script:6: @user_script: 6: -READONLY You can't write against a read only replica.":       protocol.ReadOnly,
		"OOM command not allowed when used memory > 'maxmemory'. script: 3432, on @user_script:6.":                                               protocol.OutOfMemory,
		"ERR Error running script (call to f_34): @user_script:143: @user_script: 143: -OOM command not allowed when used memory > 'maxmemory'.": protocol.OutOfMemory,
		"NOREPLICAS Not enough good replicas to write.":                                                                                          protocol.NoReplicas,
		"ERR The user executing the script can't run this command or subcommand script: 3432, on @user_script:6.":                                protocol.Denied,
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                                       protocol.Denied,
		"ERR unknown command 'EVALSHA', with args beginning with: ":                                                                              protocol.Unsupported,
		"ERR user_script:126: holdfast: the key holdfast:{bfz}:clock holds no token of ours script: 1061, on @user_script:126.":                  protocol.Other,
	} {
		if got := reasonOf(line); got != want {
			t.Errorf("%q is read as %v, not %v", line, got, want)
		}
	}
}
