package snapshot

import (
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// A Follower tells the differences between looks at names.
type Follower struct {
	Limit int // how many names it follows
	Full  bool

	known map[string]lockinfo.Info // a summary of each
}

// Look looks at all names, and tells what is different. It follows a name that it knows as long as
// the name is there, and a new one if there is room; Full says that there was none. After an error,
// names that were not told are taken to be as before.
func (f *Follower) Look(names iter.Seq2[lockinfo.Info, error], tell func(lockinfo.Change)) error {
	if f.known == nil {
		f.known = map[string]lockinfo.Info{}
	}
	seen := make(map[string]bool, len(f.known))
	var last time.Time
	for info, err := range names {
		if err != nil {
			return err
		}
		if info.At.IsZero() { // a key that is no lock's: the server was not asked about it
			info.At = last
			if last.IsZero() {
				info.At = time.Now()
			}
		} else {
			last = info.At
		}
		before, known := f.known[info.Name]
		if !known && len(f.known) >= f.Limit {
			f.Full = true
			continue
		}
		f.tellChanges(before, info, tell)
		now := info.Summary()
		f.known[now.Name], seen[now.Name] = now, true
	}
	for name, before := range f.known {
		if !seen[name] {
			delete(f.known, name)
			f.tellChanges(before, lockinfo.Info{Name: name, At: last}, tell)
		}
	}
	return nil
}

func (f *Follower) tellChanges(before, after lockinfo.Info, tell func(lockinfo.Change)) {
	for _, change := range lockinfo.Compare(before, after) {
		tell(change)
	}
}
