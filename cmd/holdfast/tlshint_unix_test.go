//go:build unix

package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// TLS that is spoken to a port without it, and the reverse, is said in words, and so is the cure.
func TestTLSHint(t *testing.T) {
	long(t)
	cert, key := certify(t)
	s, port := serveTLS(t, cert, key)
	plain := strconv.Itoa(s.Port())
	for name, test := range map[string]struct{ url, want, not string }{
		"TLS to a plain port": {"rediss://127.0.0.1:" + plain, "the server there speaks no TLS, and rediss:// is TLS", ""},
		"plain to TLS": {"redis://u:geheim@127.0.0.1:" + port, "the server there speaks TLS, and redis:// does not",
			"geheim"},
		"no server":           {"redis://127.0.0.1:1", "connection refused", "TLS"},
		"a wrong certificate": {"rediss://127.0.0.1:" + port, "certificate", "speaks"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stderr := program(t, nil, "run", "-n", "--redis", test.url, "job", "--", "true")
			_ = cmd.Run()
			text := stderr.String()
			if code := cmd.ProcessState.ExitCode(); code != cli.ExitNoServer || !strings.Contains(text, test.want) ||
				test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("exit code %d, stderr %q; want %d and %q, not %q", code, text, cli.ExitNoServer, test.want,
					test.not)
			}
		})
	}
}
