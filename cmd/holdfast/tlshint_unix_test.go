//go:build unix

package main

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// TLS that is spoken to a port without it, and the reverse, is said in words, and so is the cure.
func TestTLSHint(t *testing.T) {
	cert, key := certify(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	s, err := redisserver.Run(t.Context(), "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	if err != nil {
		t.Skipf("a server without TLS: %v", err)
	}
	defer s.Close()
	plain := strconv.Itoa(s.Port())
	for name, test := range map[string]struct{ url, want, not string }{
		"TLS to a plain port": {"rediss://127.0.0.1:" + plain, "the server there speaks no TLS, and rediss:// is TLS", ""},
		"plain to TLS":        {"redis://u:geheim@127.0.0.1:" + port, "the server there speaks TLS, and redis:// does not", "geheim"},
		"no server":           {"redis://127.0.0.1:1", "connection refused", "TLS"},
		"a wrong certificate": {"rediss://127.0.0.1:" + port, "certificate", "speaks"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stderr := program(t, nil, "run", "-n", "--redis", test.url, "job", "--", "true")
			_ = cmd.Run()
			text := stderr.String()
			if code := cmd.ProcessState.ExitCode(); code != exitNoServer || !strings.Contains(text, test.want) || test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("exit code %d, stderr %q; want %d and %q, not %q", code, text, exitNoServer, test.want, test.not)
			}
		})
	}
}
