package dashboard

import (
	"crypto/subtle"
	"encoding/base64"
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

// maxBody is the largest request to break a hold: names have at most 1 KiB.
const maxBody = 16 << 10

// breakHold breaks a hold, if all of it is right.
func (h *handler) breakHold(w http.ResponseWriter, r *http.Request) {
	if code, why := h.checkBreak(r); why != "" {
		sendError(w, code, why)
		return
	}
	var body struct {
		Name       string `json:"name"`
		NameBase64 string `json:"name_base64"`
		Token      int64  `json:"token"`
		Typed      string `json:"typed"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil {
		sendError(w, http.StatusBadRequest, "the body is not the JSON of a break")
		return
	}
	if body.NameBase64 != "" {
		name, err := base64.StdEncoding.DecodeString(body.NameBase64)
		if err != nil {
			sendError(w, http.StatusBadRequest, "name_base64 is not base64")
			return
		}
		body.Name = string(name)
	}
	if body.Typed == "" || body.Typed != typedName(body.Name) {
		sendError(w, http.StatusConflict, "the name that was typed is another one: nothing was broken")
		return
	}
	err := h.client.Break(r.Context(), body.Name, body.Token)
	var argument *holdfast.ArgumentError
	switch {
	case err == nil:
		h.sendDocument(w, r, func() any {
			return struct {
				Broken bool `json:"broken"`
			}{true}
		})
	case errors.Is(err, holdfast.ErrNotHeld):
		sendError(w, http.StatusNotFound, "this hold is over: nothing was broken")
	case errors.As(err, &argument):
		sendError(w, http.StatusBadRequest, err.Error())
	default:
		sendError(w, http.StatusBadGateway, err.Error())
	}
}

// checkBreak returns why a request may not break, and with which code. Empty: it may.
func (h *handler) checkBreak(r *http.Request) (code int, why string) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case !isSameOrigin(r):
		return http.StatusForbidden, "the request comes from another site"
	case kind != "application/json":
		return http.StatusUnsupportedMediaType, "the body is not JSON"
	case subtle.ConstantTimeCompare([]byte(r.Header.Get(secretHeader)), []byte(h.secret)) != 1:
		return http.StatusForbidden, "the secret is missing or old: load the page again"
	case !h.authorize(r):
		return http.StatusForbidden, "breaking is not allowed here"
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
