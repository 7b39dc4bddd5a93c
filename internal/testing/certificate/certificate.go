// Package certificate makes certificates for the servers and clients of tests.
package certificate

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// Write writes a self-signed certificate and its key, and returns their files. It is good for
// servers at 127.0.0.1, for clients, and as the authority of both.
func Write(tb testing.TB) (cert, key string) {
	tb.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	fatal.If(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(nil, template, template, public, private)
	fatal.If(tb, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	fatal.If(tb, err)
	write := func(name, kind string, bytes []byte) (path string) {
		path = filepath.Join(tb.TempDir(), name)
		fatal.If(tb, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", secret)
}
