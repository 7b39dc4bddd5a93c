package dashboard

import (
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// An entry is what is kept of a name.
type entry struct {
	id    uint64
	info  lockinfo.Info
	brief brief
	row   json.RawMessage
}

// A sight is what one look sees, and how that differs from the look before.
type sight struct {
	before map[string]*entry
	names  map[string]*entry
	at     time.Time
	bytes  int
	next   uint64 // the id of the next name
	more   int
	err    error

	changed []json.RawMessage
	gone    []uint64
	changes []change
	unseen  int
}

func newSight(before map[string]*entry) sight {
	s := sight{before: before, names: make(map[string]*entry, len(before)), changed: []json.RawMessage{}, gone: []uint64{}, changes: []change{}}
	for _, e := range before {
		s.next = max(s.next, e.id)
	}
	s.next++
	return s
}

// add notes a name. A SCAN may tell one twice. If there is no room, names are only counted.
func (s *sight) add(info lockinfo.Info) {
	if _, again := s.names[info.Name]; again {
		return
	}
	size := weight(info)
	if len(s.names) >= mostNames || s.bytes+size > mostBytes {
		s.more++
		return
	}
	s.bytes += size
	if info.At.After(s.at) {
		s.at = info.At
	}
	e := &entry{info: info, brief: briefOf(info)}
	old := s.before[info.Name]
	if old != nil {
		e.id = old.id
		s.tell(old, e)
	} else {
		e.id = s.next
		s.next++
		s.tell(&entry{id: e.id, info: lockinfo.Info{Name: info.Name}}, e)
	}
	s.names[info.Name] = e
	if old != nil && e.brief.same(old.brief) {
		e.row = old.row
		return
	}
	e.row, _ = json.Marshal(rowOf(e.id, info))
	s.changed = append(s.changed, e.row)
}

// end notes which names are gone.
func (s *sight) end() {
	for name, old := range s.before {
		if s.names[name] != nil {
			continue
		}
		s.gone = append(s.gone, old.id)
		at := s.at
		if at.Before(old.info.At) {
			at = old.info.At
		}
		s.change(change{At: at.UTC(), Event: "freed", ID: old.id, Name: name, NameBase64: exactly(name), Label: old.brief.label, Token: old.brief.token})
	}
	s.before = nil
}

// weight is about how many bytes a name takes in memory, with its row.
func weight(info lockinfo.Info) int {
	const each = 400
	size := each + 3*len(info.Name) + len(info.Foreign)
	holds := func(all []lockinfo.Hold) {
		for _, h := range all {
			size += each + len(h.Label) + len(h.Host) + len(h.Owner) + len(h.By)
		}
	}
	holds(info.Holds)
	for _, w := range info.Queue {
		size += each + len(w.Label) + len(w.Host) + len(w.Owner)
		for _, name := range w.Under {
			size += len(name)
		}
	}
	for _, m := range info.Masters {
		size += each
		holds(m.Holds)
	}
	return size
}

// A brief is what two looks at a name are compared by.
type brief struct {
	kind             string
	state            lockinfo.State
	label, host      string
	pid              int
	token            int64
	remains          bool // the oldest hold is a remainder
	holders, waiters int
	taken, permits   int64
	count            int64
	late             bool
	ttl              time.Duration
	until            time.Time // of the oldest hold
}

func briefOf(info lockinfo.Info) brief {
	b := brief{
		kind: string(info.Kind), state: info.State(), holders: info.Holders, waiters: info.Waiters, taken: info.Taken, permits: info.Permits,
		count: info.Count, late: late(info),
	}
	if h, ok := oldest(info); ok {
		b.label, b.host, b.pid, b.token, b.ttl, b.remains = h.Label, h.Host, h.PID, h.Token, h.TTL, rank(h) > 0
		b.until = info.At.Add(h.Remaining)
	}
	return b
}

// same tells whether a row is as it was. The end of a hold is computed from what remained at the
// time of a look, so it may differ by a little.
func (b brief) same(before brief) bool {
	moved := b.until.Sub(before.until).Abs()
	b.until, before.until = time.Time{}, time.Time{}
	return b == before && moved < 50*time.Millisecond
}

// held is the token of the oldest hold that is no remainder; 0: there is none.
func (b brief) held() int64 {
	if b.remains {
		return 0
	}
	return b.token
}

// A change is a difference between two looks at a name, as docs/json.md tells them.
type change struct {
	At         time.Time `json:"at"`
	Event      string    `json:"event"`
	ID         uint64    `json:"id"`
	Name       string    `json:"name"`
	NameBase64 string    `json:"name_base64,omitempty"`
	Label      string    `json:"label"` // of the hold that began or ended
	Token      int64     `json:"token,omitempty"`
	Holders    int       `json:"holders"`
	Waiters    int       `json:"waiters"`
	Count      int64     `json:"count,omitempty"`
}

func (s *sight) change(c change) {
	if len(s.changes) >= mostChanges {
		s.unseen++
		return
	}
	s.changes = append(s.changes, c)
}

// tell notes the changes of a name that is there.
func (s *sight) tell(old, e *entry) {
	before, now := old.brief, e.brief
	note := func(is bool, event string, of brief) {
		if is {
			s.change(change{
				At: e.info.At.UTC(), Event: event, ID: e.id, Name: e.info.Name, NameBase64: exactly(e.info.Name), Label: of.label, Token: of.token,
				Holders: now.holders, Waiters: now.waiters, Count: now.count,
			})
		}
	}
	note(now.state == lockinfo.StateForeign && before.state != now.state, "foreign", now)
	note(now.held() != 0 && now.held() != before.held(), "held", now)
	note(now.held() == 0 && before.held() != 0, "ended", before)
	if now.held() != 0 && now.held() == before.held() {
		note(now.holders != before.holders, "holders", now)
		note(now.late && !before.late, "late", now)
		note(!now.late && before.late, "renewed", now)
	}
	latch := now.state == lockinfo.StateSet || now.state == lockinfo.StateOpen
	note(latch && (now.count != before.count || now.state != before.state), "counted", now)
	note(now.waiters != before.waiters, "waiting", now)
}
