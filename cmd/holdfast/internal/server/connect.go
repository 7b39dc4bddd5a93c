package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
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
	l, err := read(raw)
	if err != nil {
		return nil, err
	}
	switch _, form, _ := strings.Cut(l.scheme, "+"); form {
	case "sentinel":
		options, err := l.sentinel()
		if err != nil {
			return nil, err
		}
		if err := files.into(options.TLSConfig); err != nil {
			return nil, err
		}
		options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, retries, dials
		return redis.NewFailoverClient(options), nil
	case "cluster":
		options, err := l.cluster()
		if err != nil {
			return nil, err
		}
		if err := files.into(options.TLSConfig); err != nil {
			return nil, err
		}
		options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, retries, dials
		return redis.NewClusterClient(options), nil
	}
	options, err := l.one()
	if err != nil {
		return nil, err
	}
	if err := files.into(options.TLSConfig); err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, retries, dials
	return redis.NewClient(options), nil
}

// into reads the files.
func (t TLS) into(config *tls.Config) error {
	switch {
	case t == TLS{}:
		return nil
	case config == nil:
		return errors.New("it is not encrypted: TLS files are for rediss:// and rediss+...:// URLs")
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
