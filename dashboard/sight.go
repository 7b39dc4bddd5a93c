package dashboard

import (
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// An entry is what is kept of a name.
type entry struct {
	id     uint64
	info   lockinfo.Info
	row    json.RawMessage
	number int // of the look since which the row is so
}

// A sight is what one look sees, and how that differs from the look before.
type sight struct {
	number int
	before map[string]*entry
	names  map[string]*entry
	at     time.Time
	bytes  int
	next   uint64 // the id of the next name
	more   int
	err    error

	gone    []uint64
	changes []json.RawMessage
	told    int // bytes of changes: at most one passes mostTold
	unseen  int
}

func newSight(before map[string]*entry, number int) sight {
	s := sight{number: number, before: before, names: make(map[string]*entry, len(before))}
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
	e := &entry{info: info}
	old := s.before[info.Name]
	if old != nil {
		e.id = old.id
		s.compare(old.info, info)
	} else {
		e.id = s.next
		s.next++
		s.compare(lockinfo.Info{}, info)
	}
	s.names[info.Name] = e
	if old != nil && sameRow(old.info, info) {
		e.row, e.number = old.row, old.number
		return
	}
	e.row, _ = json.Marshal(rowOf(e.id, info))
	e.number = s.number
}

// end notes which names are gone.
func (s *sight) end() {
	for name, old := range s.before {
		if s.names[name] != nil {
			continue
		}
		s.gone = append(s.gone, old.id)
		s.compare(old.info, lockinfo.Info{Name: name, At: s.at})
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

// compare notes the changes of a name between two looks, if there is room.
func (s *sight) compare(before, now lockinfo.Info) {
	for _, c := range lockinfo.Compare(before, now) {
		if len(s.changes) >= mostChanges || s.told > mostTold {
			s.unseen++
			continue
		}
		if c.Before.Name != "" {
			c.Before = c.Before.Summary()
		}
		c.After = c.After.Summary()
		text, _ := json.Marshal(c)
		s.told += len(text)
		s.changes = append(s.changes, text)
	}
}
