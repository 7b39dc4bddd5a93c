// Package serve has the command that serves the dashboard, figures for Prometheus, and probes.
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

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
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
	Metrics    string // a second address, for metrics and probes alone; empty: none
	Classes    []string
	Worst      int       // how many names the metrics name
	Err        io.Writer // for where it serves

	version, commit string // of the program, for its metric
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
	if s.Metrics != "" {
		_, _, err = net.SplitHostPort(s.Metrics)
		c.Check(err == nil, "--metrics-listen %q: it must be an address and a port, such as :9090", s.Metrics)
	}
	checkClasses(&c, s.Classes)
	c.Check(s.Worst >= 0 && s.Worst <= promholdfast.MaxWorst, "--worst %d: it must be 0 to %d", s.Worst,
		promholdfast.MaxWorst)
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
	client, end, err := s.NewClient(holdfast.Config{Label: cli.Operator(), Observer: observer,
		Class: classFunc(s.Classes)})
	if err != nil {
		return err
	}
	defer end()
	page, url, err := listen("--listen", s.Listen, config)
	if err != nil {
		return err
	}
	defer page.Close()
	metrics, probes := s.newMetrics(client, observer), newProbes(client)
	fmt.Fprintf(s.Err, "holdfast: the dashboard is at %s\n", url)
	if s.Metrics == "" {
		return serveUntil(ctx, page, s.newSite(client, metrics, probes, guard))
	}
	figures, url, err := listen("--metrics-listen", s.Metrics, config)
	if err != nil {
		return err
	}
	defer figures.Close()
	fmt.Fprintf(s.Err, "holdfast: the metrics are at %smetrics\n", url)
	// If one of the two ends, so does the other.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	served := make(chan error, 1)
	go func() {
		err := serveUntil(ctx, figures, newFigures(metrics, probes, guard, s.Metrics))
		cancel(cli.ErrInterrupted)
		served <- err
	}()
	err = serveUntil(ctx, page, s.newSite(client, metrics, probes, guard))
	cancel(cli.ErrInterrupted)
	return errors.Join(err, <-served)
}

// listen listens on the address of a flag, and returns the URL there. A nil config: without TLS.
func listen(flag, address string, config *tls.Config) (net.Listener, string, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("%s %s: %w%s", flag, address, err, cli.PortHint(err, "; port 0 is any free one"))
	}
	scheme := "http"
	if config != nil {
		listener, scheme = tls.NewListener(listener, config), "https"
	}
	return listener, fmt.Sprintf("%s://%s/", scheme, listener.Addr()), nil
}

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
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
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

func newServe(version, commit string) *cobra.Command {
	s := &Serve{version: version, commit: commit}
	cmd := &cobra.Command{
		Use:    "serve",
		Short:  "Serve a page that shows who holds and who waits",
		Args:   cli.NoArgs,
		PreRun: func(cmd *cobra.Command, _ []string) { s.Err = cmd.ErrOrStderr() },
		RunE:   cli.UntilSignal(s.Run),
	}
	s.Connection.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&s.Listen, "listen", "127.0.0.1:8484", "`ADDRESS` to listen on; port 0: any free one")
	flags.StringVar(&s.Cert, "listen-cert", "", "`FILE` with the certificate of the page")
	flags.StringVar(&s.Key, "listen-key", "", "`FILE` with the key of that certificate")
	flags.StringVar(&s.TokenFile, "token-file", "", "`FILE` with a token of at least 16 bytes, which readers must have")
	flags.StringVar(&s.Metrics, "metrics-listen", "",
		"second `ADDRESS`, for /metrics, /healthz and /readyz alone, such as :9090")
	flags.StringArrayVar(&s.Classes, "class", nil,
		"`RULE` for the class of a name in the metrics: PATTERN=CLASS, or what ends the class in a name")
	flags.IntVar(&s.Worst, "worst", promholdfast.MaxWorst, "how many names of the longest waits the metrics name, 0 to 10")
	flags.BoolVar(&s.AllowBreak, "allow-break", false, "let every reader break holds and evict waiters")
	return cmd
}

// Commands returns the commands of the package, of a program of a version and a commit. Empty
// texts: they are unknown.
func Commands(version, commit string) []*cobra.Command {
	return []*cobra.Command{newServe(version, commit)}
}
