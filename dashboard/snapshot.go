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
	waits []wait // of its holders
	root  bool   // a holder waits for nothing that is known, and others wait for it
	row   json.RawMessage
	poll  int // the number of the poll since which the row is so
}

// A snapshot is what one poll finds, and how that differs from the snapshot before.
type snapshot struct {
	poll   int
	before map[string]*entry
	names  map[string]*entry
	at     time.Time
	memory int    // bytes of names
	nextID uint64 // of the next name
	more   int
	err    error

	gone        []uint64
	changes     changes
	changeBytes int // at most one change passes maxChangeBytes
}

func newSnapshot(before map[string]*entry, poll int) snapshot {
	s := snapshot{poll: poll, before: before, names: make(map[string]*entry, len(before))}
	for _, e := range before {
		s.nextID = max(s.nextID, e.id)
	}
	s.nextID++
	return s
}

// addName adds a name. A SCAN may find one twice. If there is no room, names are only counted.
func (s *snapshot) addName(info lockinfo.Info) {
	if _, again := s.names[info.Name]; again {
		return
	}
	size := memorySize(info)
	if len(s.names) >= maxNames || s.memory+size > maxMemory {
		s.more++
		return
	}
	s.memory += size
	if info.At.After(s.at) {
		s.at = info.At
	}
	e := &entry{info: info}
	old := s.before[info.Name]
	if old != nil {
		e.id = old.id
		s.addChanges(old.info, info)
	} else {
		e.id = s.nextID
		s.nextID++
		s.addChanges(lockinfo.Info{}, info)
	}
	s.names[info.Name] = e
}

// finish makes the rows once all names were added, and notes which names are gone.
func (s *snapshot) finish() {
	addWaits(s.names)
	for name, e := range s.names {
		if old := s.before[name]; old != nil && equalRows(old, e) {
			e.row, e.poll = old.row, old.poll
			continue
		}
		e.row, _ = json.Marshal(newRow(e))
		e.poll = s.poll
	}
	for name, old := range s.before {
		if s.names[name] != nil {
			continue
		}
		s.gone = append(s.gone, old.id)
		s.addChanges(old.info, lockinfo.Info{Name: name, At: s.at})
	}
	s.before = nil
}

// memorySize returns about how many bytes a name takes in memory, with its row.
func memorySize(info lockinfo.Info) int {
	const each = 400
	size := each + 3*len(info.Name) + len(info.Foreign)
	addHolds := func(all []lockinfo.Hold) {
		for _, h := range all {
			size += each + len(h.Label) + len(h.Host) + len(h.Owner) + len(h.By)
		}
	}
	addHolds(info.Holds)
	for _, w := range info.Queue {
		size += each + len(w.Label) + len(w.Host) + len(w.Owner)
		for _, name := range w.Under {
			size += len(name)
		}
	}
	for _, m := range info.Masters {
		size += each
		addHolds(m.Holds)
	}
	return size
}

// addChanges adds the changes of a name between two polls, if there is room.
func (s *snapshot) addChanges(before, now lockinfo.Info) {
	for _, c := range lockinfo.Compare(before, now) {
		if len(s.changes.list) >= maxChanges || s.changeBytes > maxChangeBytes {
			s.changes.omitted++
			continue
		}
		if c.Before.Name != "" {
			c.Before = c.Before.Summary()
		}
		c.After = c.After.Summary()
		text, _ := json.Marshal(c)
		s.changeBytes += len(text)
		s.changes.list = append(s.changes.list, text)
	}
}
