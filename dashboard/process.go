package dashboard

import (
	"maps"
	"net/http"
	"slices"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// A processUse is a hold or a wait of a process.
type processUse struct {
	Name       string           `json:"name"`
	NameBase64 []byte           `json:"name_base64,omitempty"`
	Kind       lockinfo.Kind    `json:"kind,omitempty"`
	Hold       *lockinfo.Hold   `json:"hold,omitempty"`
	Waiter     *lockinfo.Waiter `json:"waiter,omitempty"`
}

// processUses are all that a process holds and waits for.
type processUses struct {
	Holds []processUse `json:"holds"`
	Waits []processUse `json:"waits"`
}

func usesOfProcess(names map[string]*entry, host string, pid int) processUses {
	out := processUses{Holds: []processUse{}, Waits: []processUse{}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		info := names[name].info
		use := processUse{Name: name, NameBase64: nonTextBytes(name), Kind: info.Kind}
		for _, h := range info.Holds {
			if h.Host == host && h.PID == pid {
				held := use
				held.Hold = &h
				out.Holds = append(out.Holds, held)
			}
		}
		for _, w := range info.Queue {
			if w.Host == host && w.PID == pid {
				waits := use
				waits.Waiter = &w
				out.Waits = append(out.Waits, waits)
			}
		}
	}
	return out
}

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
