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
	// Everywhere: who cannot be reached now is told so now.
	const retries, dials = -1, 1
	switch scheme, _, _ := strings.Cut(raw, "://"); strings.ToLower(scheme) {
	case "redis+sentinel", "rediss+sentinel":
		options, err := parseSentinel(raw)
		if err != nil {
			return nil, err
		}
		if err := files.into(options.TLSConfig, raw); err != nil {
			return nil, err
		}
		options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, retries, dials
		return redis.NewFailoverClient(options), nil
	case "redis+cluster", "rediss+cluster":
		options, err := parseCluster(raw)
		if err != nil {
			return nil, err
		}
		if err := files.into(options.TLSConfig, raw); err != nil {
			return nil, err
		}
		options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, retries, dials
		return redis.NewClusterClient(options), nil
	}
	options, err := ParseURL(raw)
	if err != nil {
		return nil, err
	}
	if err := files.into(options.TLSConfig, raw); err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, retries, dials
	return redis.NewClient(options), nil
}

// into reads the files.
func (t TLS) into(config *tls.Config, raw string) error {
	switch {
	case t == TLS{}:
		return nil
	case config == nil:
		return fmt.Errorf("%q is not encrypted: TLS files are for rediss:// and rediss+...:// URLs", Redact(raw))
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("a TLS certificate needs its key, and a key its certificate")
	}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return fmt.Errorf("TLS authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("TLS authorities: no certificate in %s", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return fmt.Errorf("TLS certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// Open is a URL without its password, fit to be given to a program: the user stays, for who needs to know which.
func Open(raw string) string {
	if all, ok := each(raw, Open); ok {
		return all
	}
	u, err := url.Parse(raw)
	if err != nil { // several hosts may be no URL to this parser
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
