package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A TLS names the files of a connection: who signs the server's certificate, and a certificate of our own with its key.
// Empty: the system's authorities, and no certificate.
type TLS struct {
	CA, Cert, Key string
}

// Connect makes a client of the server at a URL. It sends nothing. Every kind of server, one or many, comes through here:
// a scheme of its own, and whatever client go-redis has for it.
func Connect(raw string, files TLS) (redis.UniversalClient, error) {
	options, err := ParseURL(raw)
	if err != nil {
		return nil, err
	}
	if err := files.into(options, raw); err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled = true
	options.MaxRetries, options.DialerRetries = -1, 1 // who cannot be reached now is told so now
	return redis.NewClient(options), nil
}

// into reads the files.
func (t TLS) into(options *redis.Options, raw string) error {
	switch {
	case t == TLS{}:
		return nil
	case options.TLSConfig == nil:
		return fmt.Errorf("%q is not encrypted: TLS files are for rediss:// URLs", Redact(raw))
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("a TLS certificate needs its key, and a key its certificate")
	}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return fmt.Errorf("TLS authorities: %w", err)
		}
		options.TLSConfig.RootCAs = x509.NewCertPool()
		if !options.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("TLS authorities: no certificate in %s", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return fmt.Errorf("TLS certificate: %w", err)
		}
		options.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// Open is a URL without its password, fit to be given to a program: the user stays, for who needs to know which.
func Open(raw string) string {
	if all, ok := each(raw, Open); ok {
		return all
	}
	u, err := url.Parse(raw)
	if err != nil {
		return Redact(raw)
	}
	if u.User != nil {
		if u.User = url.User(u.User.Username()); u.User.Username() == "" {
			u.User = nil
		}
	}
	query := u.Query()
	for key := range query {
		if strings.Contains(strings.ToLower(key), "password") {
			query.Del(key)
			u.RawQuery = query.Encode()
		}
	}
	return u.String()
}
