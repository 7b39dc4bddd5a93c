package dashboard

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"iter"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Options say what a dashboard may do. Nil or zero Options only read.
type Options struct {
	// Authorize reports whether a request may break holds and evict waiters. It is asked when a
	// page is opened and at each break and eviction. Nil: nobody may.
	Authorize func(*http.Request) bool
}

// A lockClient is what a dashboard needs of a Client.
type lockClient interface {
	List(context.Context, holdfast.ListOptions) iter.Seq2[lockinfo.Info, error]
	Ready(context.Context) error
	Quorum(context.Context) ([]lockinfo.Master, error)
	Deadlocks(context.Context) ([]lockinfo.Deadlock, error)
	Break(ctx context.Context, name string, token int64) error
	Evict(ctx context.Context, name, waiter string) error
	Stacks(ctx context.Context, name string) ([]lockinfo.Stack, error)
	History(ctx context.Context, name string, since time.Time) iter.Seq2[lockinfo.Entry, error]
}

var _ lockClient = (*holdfast.Client)(nil)

//go:embed static
var static embed.FS

// contentPolicy lets the page use its own script and style, and ask its own server.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// handler serves one dashboard.
type handler struct {
	client    lockClient
	authorize func(*http.Request) bool
	secret    string
	hub       *hub
	deadlocks deadlockSearches
	documents chan struct{} // one in it for each document that is made or sent
}

// Handler returns the dashboard of a client. The caller keeps the client open. The label of the
// client is what a holder is told of who broke its hold. A stream ends with its request: to stop
// a server that has open pages, end the base context of its requests.
func Handler(client *holdfast.Client, options *Options) http.Handler {
	return newHandler(client, options)
}

func refuseAll(*http.Request) bool { return false }

func newHandler(client lockClient, options *Options) http.Handler {
	h := &handler{client: client, authorize: refuseAll, secret: rand.Text(), hub: newHub(client),
		documents: make(chan struct{}, maxDocuments)}
	h.deadlocks.client = client
	if options != nil && options.Authorize != nil {
		h.authorize = options.Authorize
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", serveAsset("index.html", "text/html; charset=utf-8"))
	mux.HandleFunc("GET /style.css", serveAsset("style.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET /icon.svg", serveAsset("icon.svg", "image/svg+xml"))
	for _, script := range []string{
		"app.js", "causes.js", "changes.js", "graph.js", "panel.js", "servers.js", "strip.js", "timeline.js",
		"view.js",
	} {
		mux.HandleFunc("GET /"+script, serveAsset(script, "text/javascript; charset=utf-8"))
	}
	mux.Handle("GET /events", refuseOtherSites(h.serveStream))
	mux.Handle("GET /lock", refuseOtherSites(h.serveLock))
	mux.Handle("GET /history", refuseOtherSites(h.serveHistory))
	mux.Handle("GET /process", refuseOtherSites(h.serveProcess))
	mux.Handle("GET /deadlocks", refuseOtherSites(h.serveDeadlocks))
	mux.HandleFunc("POST /break", h.serveChange("broken", func(ctx context.Context, o request) error {
		return client.Break(ctx, o.Name, o.Token)
	}))
	mux.HandleFunc("POST /evict", h.serveChange("evicted", func(ctx context.Context, o request) error {
		return client.Evict(ctx, o.Name, o.Waiter)
	}))
	mux.HandleFunc("POST /stacks", h.serveStacks)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", contentPolicy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("X-Frame-Options", "DENY")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		if r.URL.Path == "" { // a prefix without a slash at its end: relative URLs would miss
			whole, _, _ := strings.Cut(r.RequestURI, "?")
			head.Set("Location", "./"+path.Base(whole)+"/")
			w.WriteHeader(http.StatusFound)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// serveAsset serves an embedded file.
func serveAsset(name, kind string) http.HandlerFunc {
	text, err := static.ReadFile("static/" + name)
	if err != nil {
		panic(err) // a file of this package
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text)
	}
}

// refuseOtherSites refuses requests that a page of another site makes: they would cost the server.
func refuseOtherSites(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Sec-Fetch-Site") {
		case "cross-site", "same-site":
			sendError(w, http.StatusForbidden, "the request comes from another site")
		default:
			next(w, r)
		}
	})
}

// sendDocument makes a document and sends it, beside at most maxDocuments-1 others: one may be as
// large as the list.
func (h *handler) sendDocument(w http.ResponseWriter, r *http.Request, document func() any) {
	select {
	case h.documents <- struct{}{}:
		defer func() { <-h.documents }()
	case <-r.Context().Done():
		return
	}
	text, _ := json.Marshal(lockinfo.Document{Value: document()})
	w.Header().Set("Content-Type", "application/json")
	_ = writeTexts(w, text)
}

// sendError says why a request is not served.
func sendError(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct {
		Error string `json:"error"`
	}{why})
}

// polledNames returns what the last poll found. If there was none, it says so, and returns nil.
func (h *handler) polledNames(w http.ResponseWriter) map[string]*entry {
	names := h.hub.lastNames()
	if names == nil {
		sendError(w, http.StatusServiceUnavailable, "nothing was polled yet: no page is open")
	}
	return names
}

// serveLock sends what the last poll found of a name.
func (h *handler) serveLock(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	names := h.polledNames(w)
	if names == nil {
		return
	}
	found, ok := names[name]
	if !ok {
		sendError(w, http.StatusNotFound, "nobody holds or waits for this name")
		return
	}
	h.sendDocument(w, r, func() any {
		return struct {
			Lock  lockinfo.Info `json:"lock"`
			Typed string        `json:"typed"` // what a person types to break a hold
			Why   reasons       `json:"why"`
		}{found.info, typedName(name), reasonsOf(names, found.info)}
	})
}

// The bounds of what a page shows of the history of a name.
const (
	maxEntries     = 200
	maxHistoryTime = 2 * time.Second
)

// serveHistory sends the newest entries of the history of a name, as far as they can be read in
// time. There are none if nobody keeps one.
func (h *handler) serveHistory(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), maxHistoryTime)
	defer cancel()
	h.sendDocument(w, r, func() any {
		out := struct {
			Entries []lockinfo.Entry `json:"entries"`
			Error   string           `json:"error,omitempty"`
		}{Entries: []lockinfo.Entry{}}
		for e, err := range h.client.History(ctx, r.URL.Query().Get("name"), time.Time{}) {
			if err != nil {
				out.Error = err.Error()
				break
			}
			if out.Entries = append(out.Entries, e); len(out.Entries) == maxEntries {
				break
			}
		}
		return out
	})
}

// serveProcess sends what the last poll found of a process.
func (h *handler) serveProcess(w http.ResponseWriter, r *http.Request) {
	host, pidText := r.URL.Query().Get("host"), r.URL.Query().Get("pid")
	pid, err := strconv.Atoi(pidText)
	if host == "" || err != nil {
		sendError(w, http.StatusBadRequest, "host and pid are missing")
		return
	}
	names := h.polledNames(w)
	if names == nil {
		return
	}
	h.sendDocument(w, r, func() any { return usesOfProcess(names, host, pid) })
}
