//go:build unix

package main

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/certificate"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// serveTLS starts a server that speaks TLS at a second port. It asks clients for a certificate.
func serveTLS(t *testing.T, cert, key string) (s *redisserver.Server, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	s, err = redisserver.Run(t.Context(), "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", cert)
	if err != nil {
		t.Skipf("a server without TLS: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s, port
}

// TLS that is spoken to a port without it, and the reverse, is said in words, and so is the cure.
func TestRunTLS(t *testing.T) {
	long(t)
	cert, key := certificate.Write(t)
	s, port := serveTLS(t, cert, key)
	encrypted := "rediss://127.0.0.1:" + port
	for name, test := range map[string]struct {
		flags     []string
		code      int
		want, not string
	}{
		"with all": {[]string{encrypted, "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key}, 0, "", "\n"},
		"unknown authority": {[]string{encrypted, "--tls-cert", cert, "--tls-key", key}, cli.ExitNoServer,
			"certificate", "speaks"},
		"without certificate": {[]string{encrypted, "--tls-ca", cert}, cli.ExitNoServer, "no answer", "speaks"},
		"no flags":            {[]string{encrypted}, cli.ExitNoServer, "certificate", "speaks"},
		"TLS to a plain port": {[]string{"rediss://127.0.0.1:" + strconv.Itoa(s.Port())}, cli.ExitNoServer,
			"the server there speaks no TLS, and rediss:// is TLS", "geheim"},
		"plain to TLS": {[]string{"redis://u:geheim@127.0.0.1:" + port}, cli.ExitNoServer,
			"the server there speaks TLS, and redis:// does not", "geheim"},
		"no server": {[]string{"redis://127.0.0.1:1"}, cli.ExitNoServer, "connection refused", "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stderr := program(t, nil, append(append([]string{"run", "-n", "--redis"}, test.flags...),
				"job", "--", "true")...)
			_ = cmd.Run()
			code, text := cmd.ProcessState.ExitCode(), stderr.String()
			if code != test.code || !strings.Contains(text, test.want) || strings.Contains(text, test.not) {
				t.Errorf("exit code %d, stderr %q; want %d and %q, not %q", code, text, test.code, test.want,
					test.not)
			}
		})
	}
}
