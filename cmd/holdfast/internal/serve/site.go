package serve

import (
	"io"
	"net"
	"net/http"
	"path"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/dashboard"
	"github.com/holdfast-go/holdfast/promholdfast"
)

// newSite is all that is served with the page.
func (s *Serve) newSite(client *holdfast.Client, metrics http.Handler, probes *http.ServeMux,
	guard tokenChecker) http.Handler {
	page := dashboard.Handler(client, &dashboard.Options{Authorize: func(*http.Request) bool { return s.AllowBreak }})
	mux := http.NewServeMux()
	mux.Handle("/healthz", probes)
	mux.Handle("/readyz", probes)
	mux.Handle("GET /metrics", guard.guard(metrics))
	mux.Handle("/", guard.guard(page))
	return mux
}

// newFigures is what the address of --metrics-listen serves. Without a token, an address that is no
// loopback is asked for by any name.
func newFigures(metrics http.Handler, probes *http.ServeMux, guard tokenChecker, address string) http.Handler {
	if host, _, _ := net.SplitHostPort(address); guard.token != "" || isLoopback(host) {
		metrics = guard.guard(metrics)
	}
	mux := http.NewServeMux()
	mux.Handle("/healthz", probes)
	mux.Handle("/readyz", probes)
	mux.Handle("GET /metrics", metrics)
	return mux
}

// newProbes serves the probes. They need no token, as they tell nothing but yes or no.
func newProbes(client *holdfast.Client) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.Handle("GET /readyz", &probe{ask: client.Ready})
	return mux
}

// newMetrics serves the figures of all processes, the counts of this one, and its version.
func (s *Serve) newMetrics(client *holdfast.Client, observer *promholdfast.Observer) http.Handler {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "holdfast_build_info", Help: "1, with the version of the program as labels.",
		ConstLabels: prometheus.Labels{"version": s.version, "revision": s.commit, "goversion": runtime.Version()},
	})
	build.Set(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(observer, build,
		promholdfast.NewCollector(client, &promholdfast.CollectorOptions{Worst: s.Worst}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 3})
}

// checkClasses notes a rule of --class that has no meaning.
func checkClasses(list *cli.Checklist, rules []string) {
	for _, rule := range rules {
		pattern, class, named := strings.Cut(rule, "=")
		_, err := path.Match(pattern, "")
		list.Check(rule != "" && (!named || pattern != "" && class != "" && err == nil),
			"--class %q: it must be PATTERN=CLASS, or a text that ends the class in a name, such as :", rule)
	}
}

// classFunc returns the Config.Class of rules: the first that fits a name gives its class. Without
// rules it is nil.
func classFunc(rules []string) func(string) string {
	if len(rules) == 0 {
		return nil
	}
	return func(name string) string {
		for _, rule := range rules {
			if pattern, class, named := strings.Cut(rule, "="); named {
				if matches(pattern, name) {
					return class
				}
			} else if class, _, found := strings.Cut(name, rule); found {
				return class
			}
		}
		return ""
	}
}

// matches reports whether a pattern matches a name. As with ls, and not as in a path, a star also
// stands for slashes.
func matches(pattern, name string) bool {
	plain := strings.NewReplacer("/", "\x00")
	ok, _ := path.Match(plain.Replace(pattern), plain.Replace(name))
	return ok
}
