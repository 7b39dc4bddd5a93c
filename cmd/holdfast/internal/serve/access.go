package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A tokenChecker lets in who has the token. Without one it lets in who asks for this host by
// a loopback name: a page of another site can lead its own name to this address, but then the
// browser asks for that name.
type tokenChecker struct{ token string }

func (d tokenChecker) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case d.token == "" && !isLocal(r.Host):
			http.Error(w, "this page is served to loopback names alone", http.StatusMisdirectedRequest)
		case d.token != "" && !d.hasToken(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="holdfast", charset="UTF-8"`)
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hasToken reports whether a request has the token: as a bearer token, or as the password that
// a browser asked for.
func (d tokenChecker) hasToken(r *http.Request) bool {
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		_, given, _ = r.BasicAuth()
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(d.token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// isLocal reports whether a Host header names the loopback.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return isLoopback(strings.Trim(host, "[]"))
}

// probeEvery is how long an answer about readiness is good for. Anybody may ask.
const probeEvery = time.Second

// A probe reports whether the servers can serve, and asks them at most once a second.
type probe struct {
	ask func(context.Context) error

	mu   sync.Mutex
	at   time.Time
	good bool
}

// ServeHTTP implements http.Handler.
func (p *probe) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if !p.ready() {
		http.Error(w, "the servers cannot serve", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// ready does not end with the request: others wait for the same answer, within 1 s.
func (p *probe) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || time.Since(p.at) >= probeEvery {
		p.good = p.ask(context.Background()) == nil
		p.at = time.Now()
	}
	return p.good
}
