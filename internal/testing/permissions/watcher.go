package permissions

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/store"
)

// A watcher looks at the servers before and after each request of the user whose permissions are
// tried. No other user's request is carried out meanwhile.
type watcher struct {
	t       *testing.T
	realm   Realm
	prefix  string
	one     sync.Mutex
	touched atomic.Bool // by a request that was refused
}

// open makes a client: of the operator, or of the user whom it watches.
func (w *watcher) open(user string, watched bool) (*holdfast.Client, error) {
	password := ""
	if user != "" {
		password = "pw"
	}
	store, err := w.realm.Store(w.t, user, password)
	if err != nil {
		return nil, err
	}
	// The time for one request is a sixth of the TTL, and for a release its time-out. The watcher's
	// looks are part of it.
	config := &holdfast.Config{Prefix: w.prefix, TTL: 6 * time.Second, ReleaseTimeout: 2 * time.Second}
	c, err := holdfast.New(&watchedStore{store, w, watched}, config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c, nil
}

type watchedStore struct {
	store.Store
	watcher *watcher
	watched bool
}

// Do implements store.Store.
func (s *watchedStore) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	w := s.watcher
	w.one.Lock()
	defer w.one.Unlock()
	if !s.watched {
		return s.Store.Do(ctx, node, commands)
	}
	for _, do := range w.realm.Servers {
		_, _ = do("SCRIPT", "FLUSH") // else it depends on time which scripts the operator has loaded already
	}
	if len(commands) != 1 {
		return s.Store.Do(ctx, node, commands)
	}
	began := time.Now()
	before := w.snapshot()
	replies := s.Store.Do(ctx, node, commands)
	if replies[0].Refused != "" {
		after := w.snapshot()
		took := time.Since(began).Milliseconds() + 2
		// it ran out
		maps.DeleteFunc(before, func(key string, e entry) bool {
			return after[key] == (entry{}) && e.left >= 0 && e.left <= took
		})
		same := func(a, b entry) bool { return a.dump == b.dump && b.left <= a.left && b.left >= a.left-took }
		if !maps.EqualFunc(before, after, same) {
			w.touched.Store(true)
		}
	}
	return replies
}

// An entry is what a key holds, and for how many ms; -1: for ever.
type entry struct {
	dump string
	left int64
}

func (w *watcher) snapshot() map[string]entry {
	seen := map[string]entry{}
	for _, do := range w.realm.Servers {
		keys, _ := do("KEYS", w.prefix+"*")
		list, _ := keys.([]any)
		for _, key := range list {
			left, _ := do("PTTL", key)
			dump, _ := do("DUMP", key)
			e := entry{}
			e.dump, _ = dump.(string)
			e.left, _ = left.(int64)
			if e.dump != "" {
				seen[key.(string)] = e
			}
		}
	}
	return seen
}
