package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/dashboard"
	"github.com/holdfast-go/holdfast/promholdfast"
)

// leastToken is how many bytes a token has at least: it must not be guessed.
const leastToken = 16

const (
	shutdown = 5 * time.Second // how long requests may go on after an interrupt
	patience = time.Minute     // how long an answer may take; streams of the page have times of their own
)

// Serve serves the dashboard.
type Serve struct {
	cli.Connection
	Listen     string
	Cert, Key  string // of the listener; empty: no TLS
	TokenFile  string // empty: nobody is asked for a token
	AllowBreak bool
	Err        io.Writer // for where it serves
}

// Validate refuses bad arguments.
func (s *Serve) Validate() error {
	var c cli.Checklist
	host, _, err := net.SplitHostPort(s.Listen)
	c.Check(err == nil, "--listen %q: it must be an address and a port, such as 127.0.0.1:8484", s.Listen)
	c.Check((s.Cert == "") == (s.Key == ""), "--listen-cert %q and --listen-key %q: both or none must be given", s.Cert,
		s.Key)
	safe := s.Cert != "" && s.TokenFile != ""
	c.Check(err != nil || isLoopback(host) || safe,
		"--listen %q: it is no loopback address: it takes --listen-cert, --listen-key and --token-file", s.Listen)
	s.Connection.Check(&c)
	return c.Err()
}

// isLoopback reports whether only this host reaches a host.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Run serves until ctx ends. An interrupt is the normal end, and not an error.
func (s *Serve) Run(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return err
	}
	guard, err := s.readToken()
	if err != nil {
		return err
	}
	config, err := s.loadTLS()
	if err != nil {
		return err
	}
	observer := promholdfast.NewObserver()
	client, end, err := s.NewClient(holdfast.Config{Label: cli.Operator(), Observer: observer})
	if err != nil {
		return err
	}
	defer end()
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w%s", s.Listen, err, cli.PortHint(err, "; port 0 is any free one"))
	}
	scheme := "http"
	if config != nil {
		listener, scheme = tls.NewListener(listener, config), "https"
	}
	fmt.Fprintf(s.Err, "holdfast: the dashboard is at %s://%s/\n", scheme, listener.Addr())
	return s.serveUntil(ctx, listener, newSite(client, observer, guard, s.AllowBreak))
}

// readToken reads the token.
func (s *Serve) readToken() (tokenChecker, error) {
	if s.TokenFile == "" {
		return tokenChecker{}, nil
	}
	text, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return tokenChecker{}, cli.Usagef("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < leastToken {
		return tokenChecker{}, cli.Usagef("--token-file %q: the token has %d bytes, and must have at least %d", s.TokenFile,
			len(token), leastToken)
	}
	return tokenChecker{token: token}, nil
}

// loadTLS reads the certificate of the listener; nil: there is none.
func (s *Serve) loadTLS() (*tls.Config, error) {
	if s.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	if err != nil {
		return nil, cli.Usagef("--listen-cert and --listen-key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}}, nil
}

// serveUntil serves until ctx ends. The streams of open pages end with ctx as well.
func (s *Serve) serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	web := &http.Server{
		Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: patience,
		IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	rest, cancel := context.WithTimeout(context.Background(), shutdown)
	defer cancel()
	err := web.Shutdown(rest)
	if err != nil {
		err = web.Close()
	}
	<-served
	if cause := context.Cause(ctx); !errors.Is(cause, cli.ErrInterrupted) {
		err = errors.Join(err, cause)
	}
	return err
}

// newSite is all that is served. Probes need no token, as they tell nothing but yes or no.
func newSite(client *holdfast.Client, observer *promholdfast.Observer, guard tokenChecker,
	allowBreak bool) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(observer, promholdfast.NewCollector(client, nil))
	page := dashboard.Handler(client, &dashboard.Options{Authorize: func(*http.Request) bool { return allowBreak }})
	readiness := &probe{ask: client.Ready}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.Handle("GET /readyz", readiness)
	mux.Handle("GET /metrics", guard.guard(promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 3})))
	mux.Handle("/", guard.guard(page))
	return mux
}

func newServe() *cobra.Command {
	s := &Serve{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a page that shows who holds and who waits",
		Long: `Serve a page that shows who holds and who waits, while it changes. While it is open, all names are
read once a second, however many look. It only shows, unless --allow-break lets its readers break
holds.

  /          the page
  /metrics   for Prometheus: figures of all processes
  /healthz   200 while the program runs
  /readyz    200 if the servers can serve, 503 otherwise

It listens on loopback. Any other address takes --listen-cert, --listen-key and --token-file. With
a token, readers send it as "Authorization: Bearer TOKEN"; a browser asks for a password, which is
the token, with any name. /healthz and /readyz need none.

Exit codes: 0 it was interrupted; 64 usage; 1 it cannot listen. A server that is away is shown on
the page.`,
		Example: `  holdfast serve
  holdfast serve --listen :8484 --token-file token \
    --listen-cert cert.pem --listen-key key.pem`,
		Args: cli.NoArgs,
		RunE: cli.UntilSignal(func(ctx context.Context, cmd *cobra.Command) error {
			s.Err = cmd.ErrOrStderr()
			return s.Run(ctx)
		}),
	}
	s.Connection.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&s.Listen, "listen", "127.0.0.1:8484", "`ADDRESS` to listen on; port 0: any free one")
	flags.StringVar(&s.Cert, "listen-cert", "", "`FILE` with the certificate of the page")
	flags.StringVar(&s.Key, "listen-key", "", "`FILE` with the key of that certificate")
	flags.StringVar(&s.TokenFile, "token-file", "", "`FILE` with a token of at least 16 bytes, which readers must have")
	flags.BoolVar(&s.AllowBreak, "allow-break", false, "let every reader break holds")
	return cmd
}
