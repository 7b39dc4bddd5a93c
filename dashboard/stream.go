package dashboard

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// A cursor is how far one stream is. It keeps no list: it reads the rows of the run in the order of
// the polls that changed them, a part at a time. So a stream of any speed costs one part, and a row
// that changed again before it was sent is sent once.
type cursor struct {
	poll  int    // of the last row that was sent
	id    uint64 // of that row
	begun int    // the last poll of which something was sent; 0: nothing was sent
	whole int    // the last poll of which all was sent
	text  []byte // of the part that is being sent
}

// An update is an event of the stream, or a part of one.
type update struct {
	status
	Whole   bool              `json:"whole"`   // the list begins anew
	Part    bool              `json:"part"`    // more of the list follows at once
	Gone    []uint64          `json:"gone"`    // ids of rows
	Changes []json.RawMessage `json:"changes"` // between the poll before and this one
	Omitted int               `json:"omitted"` // changes that are left out, as they are too many
	Changed []json.RawMessage `json:"changed"` // rows
}

// nextUpdate returns what a stream has not sent yet, or a part of it; nil if there is nothing. It
// is good until the next call. wake is closed when there is more.
func (h *hub) nextUpdate(r *run, c *cursor) (text []byte, wake <-chan struct{}) {
	h.mu.Lock()
	if c.whole == r.poll {
		defer h.mu.Unlock()
		return nil, r.wake
	}
	if c.begun < r.forgotten {
		*c = cursor{text: c.text}
	}
	next := update{status: r.status, Whole: c.begun == 0, Gone: []uint64{}, Changes: []json.RawMessage{}}
	for _, gone := range r.gone {
		if gone.poll > c.begun && c.begun > 0 {
			next.Gone = append(next.Gone, gone.id)
		}
	}
	if c.begun > 0 && c.begun == r.poll-1 {
		next.Changes, next.Omitted = append(next.Changes, r.changes.list...), r.changes.omitted
	}
	poll, rows := r.poll, r.rows // the run gets new rows: these stay as they are
	wake = r.wake
	h.mu.Unlock()

	size := 0
	for _, e := range rows[c.firstUnsent(rows):] {
		if next.Part = size >= maxPart; next.Part {
			break
		}
		next.Changed, size = append(next.Changed, e.row), size+len(e.row)
		c.poll, c.id = e.poll, e.id
	}
	c.begun = poll
	if !next.Part {
		c.whole = poll
	}
	c.text = next.appendJSON(c.text[:0], size)
	return c.text, wake
}

// firstUnsent returns the place of the first row that is to be sent.
func (c *cursor) firstUnsent(rows []*entry) int {
	at, _ := slices.BinarySearchFunc(rows, *c, func(e *entry, c cursor) int {
		if e.poll < c.poll || e.poll == c.poll && e.id <= c.id {
			return -1
		}
		return 1
	})
	return at
}

// appendJSON appends the update in JSON. The rows are JSON already, and many: json.Marshal would
// read each byte of them again. They have size bytes.
func (u *update) appendJSON(text []byte, size int) []byte {
	rows := u.Changed
	u.Changed = nil
	head, _ := json.Marshal(u)
	text = slices.Grow(text, len(head)+size+len(rows)+len("[]}"))
	text = append(append(text, head[:len(head)-len("null}")]...), '[')
	for i, row := range rows {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, row...)
	}
	return append(text, "]}"...)
}

// serveStream sends a page its updates.
func (h *handler) serveStream(w http.ResponseWriter, r *http.Request) {
	hello, _ := json.Marshal(lockinfo.Document{Value: struct {
		CanBreak bool   `json:"can_break"`
		Secret   string `json:"secret"`
	}{h.authorize(r), h.secret}})
	run, err := h.hub.addViewer()
	if err != nil {
		w.Header().Set("Retry-After", "10")
		sendError(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer h.hub.removeViewer()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not wait for more
	sendEvent := func(event string, data []byte) bool {
		return writeTexts(w, []byte("event: "+event+"\ndata: "), data, []byte("\n\n")) == nil
	}
	if !sendEvent("hello", hello) {
		return
	}
	var sent cursor
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		text, wake := h.hub.nextUpdate(run, &sent)
		if text != nil {
			if !sendEvent("update", text) {
				return
			}
			ping.Reset(pingInterval)
			continue // there may be more
		}
		select {
		case <-wake:
		case <-ping.C:
			if !sendEvent("ping", nil) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// writeTexts writes to a page that may not read: after writeTimeout it fails. The texts are not
// copied.
func writeTexts(w http.ResponseWriter, texts ...[]byte) error {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	for _, text := range texts {
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if err := control.Flush(); err != nil {
		return err
	}
	_ = control.SetWriteDeadline(time.Time{}) // of the server, for what else it may write
	return nil
}
