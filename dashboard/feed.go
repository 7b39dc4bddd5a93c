package dashboard

import (
	"encoding/json"
	"slices"
)

// A feed is how far one stream is. It keeps no list: it reads the rows of the run in the order of
// the looks that changed them, a part at a time. So a stream of any speed costs one part, and a row
// that changed again before it was sent is sent once.
type feed struct {
	number int    // the look of the last row that was sent
	id     uint64 // of that row
	began  int    // the last look of which something was sent; 0: nothing was sent
	whole  int    // the last look of which all was sent
	text   []byte // of the part that is being sent
}

// look is an event of the stream, or a part of one.
type look struct {
	status
	Whole   bool              `json:"whole"`   // the list begins anew
	Part    bool              `json:"part"`    // more of the list follows at once
	Gone    []uint64          `json:"gone"`    // ids of rows
	Changes []json.RawMessage `json:"changes"` // between the look before and this one
	Unseen  int               `json:"unseen"`  // changes that are not told, as they are too many
	Changed []json.RawMessage `json:"changed"` // rows
}

// told is what differs between two looks, for people.
type told struct {
	changes []json.RawMessage
	unseen  int
}

// news is what a stream has not sent yet, or a part of it; nil: there is nothing. It is good until
// the next call. wake is closed when there is more.
func (h *hub) news(r *run, f *feed) (text []byte, wake <-chan struct{}) {
	h.mu.Lock()
	if f.whole == r.number {
		defer h.mu.Unlock()
		return nil, r.wake
	}
	if f.began < r.forgotten {
		*f = feed{text: f.text}
	}
	event := look{status: r.status, Whole: f.began == 0, Gone: []uint64{}, Changes: []json.RawMessage{}}
	for _, gone := range r.gone {
		if gone.number > f.began && f.began > 0 {
			event.Gone = append(event.Gone, gone.id)
		}
	}
	if f.began > 0 && f.began == r.number-1 {
		event.Changes, event.Unseen = append(event.Changes, r.told.changes...), r.told.unseen
	}
	number, rows := r.number, r.rows // the run gets new rows: these stay as they are
	wake = r.wake
	h.mu.Unlock()

	size := 0
	for _, e := range rows[f.next(rows):] {
		if event.Part = size >= mostPart; event.Part {
			break
		}
		event.Changed, size = append(event.Changed, e.row), size+len(e.row)
		f.number, f.id = e.number, e.id
	}
	f.began = number
	if !event.Part {
		f.whole = number
	}
	f.text = event.appendTo(f.text[:0], size)
	return f.text, wake
}

// next is the place of the first row that is to be sent.
func (f *feed) next(rows []*entry) int {
	at, _ := slices.BinarySearchFunc(rows, *f, func(e *entry, f feed) int {
		if e.number < f.number || e.number == f.number && e.id <= f.id {
			return -1
		}
		return 1
	})
	return at
}

// appendTo appends the event in JSON. The rows are JSON already, and many: json.Marshal would look
// at each byte of them again. They have size bytes.
func (l *look) appendTo(text []byte, size int) []byte {
	rows := l.Changed
	l.Changed = nil
	head, _ := json.Marshal(l)
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
