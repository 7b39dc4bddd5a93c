package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
)

// A TLS names the files of an encrypted connection: the certificates of the authorities that may
// sign the server's, and a client certificate with its key. Empty: the authorities of the system,
// and no certificate.
type TLS struct {
	CA, Cert, Key string
}

// Connect makes the client of go-redis for a URL, of one server or of many. It sends nothing. The
// client does not try a connection again: the caller is to learn of a failure at once.
func Connect(raw string, files TLS) (redis.UniversalClient, error) {
	l, err := read(raw)
	if err != nil {
		return nil, err
	}
	switch l.form() {
	case "sentinel":
		options, err := l.sentinel(files)
		if err != nil {
			return nil, err
		}
		return redis.NewFailoverClient(options), nil
	case "cluster":
		options, err := l.cluster(files)
		if err != nil {
			return nil, err
		}
		return redis.NewClusterClient(options), nil
	}
	options, err := l.oneServer(files)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(options), nil
}

// Sentinels returns the name of the master in a URL of sentinels, and how each sentinel is reached.
// Of any other URL, and of one that Connect refuses, it returns none.
func Sentinels(raw string, files TLS) (master string, sentinels []*redis.Options) {
	l, err := read(raw)
	if err != nil || l.form() != "sentinel" {
		return "", nil
	}
	options, err := l.sentinel(files)
	if err != nil {
		return "", nil
	}
	for _, address := range options.SentinelAddrs {
		sentinels = append(sentinels, &redis.Options{
			Addr: address, Username: options.SentinelUsername, Password: options.SentinelPassword,
			TLSConfig: options.TLSConfig, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		})
	}
	return options.MasterName, sentinels
}

// into reads the files into config, which is nil for a URL without encryption. host is the name in
// the certificate of the server.
func (t TLS) into(config *tls.Config, host string) error {
	if config != nil {
		config.ServerName = host
	}
	switch {
	case t == TLS{}:
		return nil
	case config == nil:
		return errors.New("the URL is not encrypted: TLS files are for rediss:// and rediss+...:// URLs")
	case (t.Cert == "") != (t.Key == ""):
		return fmt.Errorf("TLS certificate %q and key %q: a certificate needs its key, and a key its certificate", t.Cert,
			t.Key)
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
