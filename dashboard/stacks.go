package dashboard

import (
	"net/http"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// serveStacks asks the processes of holders which call took a name, and sends the answers. It
// changes nothing, and sends messages: so another site may not make it.
func (h *handler) serveStacks(w http.ResponseWriter, r *http.Request) {
	if code, why := h.checkPost(r); why != "" {
		sendError(w, code, why)
		return
	}
	h.sendDocument(w, r, func() any {
		stacks, err := h.client.Stacks(r.Context(), r.URL.Query().Get("name"))
		out := struct {
			Stacks []lockinfo.Stack `json:"stacks"`
			Error  string           `json:"error,omitempty"`
		}{Stacks: append([]lockinfo.Stack{}, stacks...)}
		if err != nil {
			out.Error = err.Error()
		}
		return out
	})
}
