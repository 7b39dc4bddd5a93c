//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// certify writes a self-signed certificate for server and client, and its key.
func certify(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed},
		key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

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
	cert, key := certify(t)
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
