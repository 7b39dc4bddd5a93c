package dashboard

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// secretHeader carries the secret that the stream says. Another site can neither read it nor send
// this header.
const secretHeader = "X-Holdfast-Secret"

// maxBody is the largest request to change something: names have at most 1 KiB.
const maxBody = 16 << 10

// A request asks to break the hold with a token, or to evict a waiter.
type request struct {
	Name       string `json:"name"`
	NameBase64 []byte `json:"name_base64"`
	Token      int64  `json:"token"`
	Waiter     string `json:"waiter"` // its ID
	Typed      string `json:"typed"`
}

// serveChange changes something, if all of the request is right. The answer says what was done.
func (h *handler) serveChange(done string, change func(context.Context, request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if code, why := h.checkChange(r); why != "" {
			sendError(w, code, why)
			return
		}
		var o request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&o); err != nil {
			sendError(w, http.StatusBadRequest, "the body is not the JSON of such a request")
			return
		}
		if o.NameBase64 != nil {
			o.Name = string(o.NameBase64)
		}
		if o.Typed == "" || o.Typed != typedName(o.Name) {
			sendError(w, http.StatusConflict, "the name that was typed is another one: nothing was "+done)
			return
		}
		err := change(r.Context(), o)
		var argument *holdfast.ArgumentError
		switch {
		case err == nil:
			h.sendDocument(w, r, func() any { return map[string]bool{done: true} })
		case errors.Is(err, holdfast.ErrNotHeld):
			sendError(w, http.StatusNotFound, "this hold is over: nothing was broken")
		case errors.Is(err, holdfast.ErrNotWaiting):
			sendError(w, http.StatusNotFound, "it does not wait any more: nobody was evicted")
		case errors.As(err, &argument):
			sendError(w, http.StatusBadRequest, err.Error())
		default:
			sendError(w, http.StatusBadGateway, err.Error())
		}
	}
}

// checkChange returns why a request may change nothing, and with which code. Empty: it may.
func (h *handler) checkChange(r *http.Request) (code int, why string) {
	if code, why = h.checkPost(r); why == "" && !h.authorize(r) {
		return http.StatusForbidden, "breaking and evicting are not allowed here"
	}
	return code, why
}

// checkPost returns why a POST is refused that a page of this handler did not make, and with which
// code. Empty: one made it.
func (h *handler) checkPost(r *http.Request) (code int, why string) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case !isSameOrigin(r):
		return http.StatusForbidden, "the request comes from another site"
	case kind != "application/json":
		return http.StatusUnsupportedMediaType, "the body is not JSON"
	case subtle.ConstantTimeCompare([]byte(r.Header.Get(secretHeader)), []byte(h.secret)) != 1:
		return http.StatusForbidden, "the secret is missing or old: load the page again"
	}
	return 0, ""
}

// isSameOrigin reports whether a page of the same origin made a request. A request that does not
// say so is refused.
func isSameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, r.Host)
}

// typedName returns what a person types for a name. It is the name, unless that has characters that
// are invisible or no keyboard has.
func typedName(name string) string {
	for _, r := range name {
		if !strconv.IsPrint(r) || r == '\uFFFD' {
			quoted := strconv.QuoteToASCII(name)
			return quoted[1 : len(quoted)-1]
		}
	}
	return name
}
