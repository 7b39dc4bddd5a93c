package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

var at = time.Date(2026, 11, 24, 2, 14, 5, 0, time.UTC)

func lock(name string, token int64, held time.Duration, waiters int) lockinfo.Info {
	return lockinfo.Info{Name: name, Kind: "mutex", At: at, Holders: 1, Waiters: waiters,
		Holds: []lockinfo.Hold{{State: lockinfo.StateHeld, Label: "l" + name, Mode: lockinfo.ModeExclusive,
			Token: token, Since: at.Add(-held)}}}
}

func streamOf(err error, infos ...lockinfo.Info) iter.Seq2[lockinfo.Info, error] {
	return func(yield func(lockinfo.Info, error) bool) {
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(lockinfo.Info{}, err)
		}
	}
}

func TestTakeKeepsTheFirstOfTheOrder(t *testing.T) {
	var all []lockinfo.Info
	for i := range 500 {
		all = append(all, lock(fmt.Sprintf("n%03d", i), int64(i+1), time.Duration(i%97)*time.Second, i%13))
	}
	all = append(all, lockinfo.Info{Name: "queue only", Kind: lockinfo.KindMutex, At: at, Waiters: 1})
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = append(all, all[:50]...) // a SCAN may tell a name twice
	for _, order := range Orders {
		s, err := Take(streamOf(nil, all...), order.Compare, 20)
		if err != nil || s.Total != 501 || len(s.Locks) != 20 {
			t.Fatalf("%s: %v, %d names, %d kept", order, err, s.Total, len(s.Locks))
		}
		want := slices.Clone(all[:501])
		slices.SortFunc(want, order.Compare)
		if !reflect.DeepEqual(s.Locks, want[:20]) {
			t.Errorf("%s: got %v", order, s.Locks)
		}
	}
	if s, _ := Take(streamOf(nil, all...), ByAge.Compare, 1000); len(s.Locks) != 501 ||
		s.Locks[500].Name != "queue only" {
		t.Errorf("a name that nobody holds is not the last one by age")
	}
	away := errors.New("away")
	if _, err := Take(streamOf(away, all[:3]...), ByAge.Compare, 20); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}

func TestWindowIsBounded(t *testing.T) {
	w := NewWindow()
	for i := range 3 * windowSize {
		name := fmt.Sprint(i)
		if !w.Add(name) || w.Add(name) {
			t.Fatalf("name %d", i)
		}
	}
	if len(w.seen) != windowSize || len(w.ring) != windowSize {
		t.Errorf("it remembers %d and %d names", len(w.seen), len(w.ring))
	}
	if !w.Add("0") {
		t.Error("the first name is still remembered")
	}
}

// A Follower knows what it was told before, follows as many names as it may, and takes nothing for
// free that was not told.
func TestFollower(t *testing.T) {
	f := &Follower{Limit: 3}
	look := func(err error, infos ...lockinfo.Info) string {
		var told []string
		if e := f.Look(streamOf(err, infos...),
			func(c lockinfo.Change) { told = append(told, c.After.Name+" "+string(c.Event)) }); !errors.Is(e, err) {
			t.Fatalf("got %v", e)
		}
		slices.Sort(told)
		return strings.Join(told, ", ")
	}
	latch := lockinfo.Info{Name: "l", Kind: lockinfo.KindLatch, At: at}
	away := errors.New("away")
	for i, step := range []struct {
		err   error
		infos []lockinfo.Info
		want  string
	}{
		{nil, []lockinfo.Info{lock("a", 1, 0, 0), lock("b", 5, 0, 2)}, "a held, b held, b waiting"},
		{nil, []lockinfo.Info{lock("a", 2, 0, 1), lock("b", 5, 0, 2), lock("a", 2, 0, 1)}, "a held, a waiting"},
		{away, []lockinfo.Info{lock("a", 2, 0, 3)}, "a waiting"}, // and b is not taken for free
		{nil, []lockinfo.Info{lock("b", 5, 0, 2), latch}, "a freed, l counted"},
		{nil, []lockinfo.Info{lock("b", 5, 0, 2), latch, {Name: "f", Foreign: "a list"}}, "f foreign"},
		{nil, []lockinfo.Info{lock("new", 9, 0, 0), lock("b", 5, 0, 2), latch}, "f freed"}, // no room yet
		{nil, []lockinfo.Info{lock("new", 9, 0, 0), lock("b", 5, 0, 2)}, "l freed, new held"},
	} {
		if got := look(step.err, step.infos...); got != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
	if !f.Full {
		t.Error("it does not say that it had no room")
	}
}

// Of a key that is no lock's the server's time is not known.
func TestFollowerTellsWhen(t *testing.T) {
	var f Follower
	f.Limit = 9
	for _, step := range []struct {
		infos []lockinfo.Info
		known bool
	}{
		{[]lockinfo.Info{{Name: "odd", Foreign: "a list"}}, false},
		{[]lockinfo.Info{lock("a", 1, 0, 0), {Name: "odd 2", Foreign: "a list"}}, true},
	} {
		err := f.Look(streamOf(nil, step.infos...), func(c lockinfo.Change) {
			if c.After.At.IsZero() || step.known && c.Event == lockinfo.EventForeign && !c.After.At.Equal(at) {
				t.Errorf("%s %s at %v", c.After.Name, c.Event, c.After.At)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestCaptureComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	w, err := Create(path, "redis://h")
	fatal.If(t, err)
	many := lock("many\xff", 3, time.Second, 200)
	many.Holders = 30
	for range 30 {
		many.Holds = append(many.Holds, many.Holds[0])
		many.Queue = append(many.Queue, lockinfo.Waiter{ID: "x", Place: 1, Label: "w", Alive: lockinfo.AliveYes})
	}
	first := Snapshot{At: at, Took: 5 * time.Millisecond, Total: 7,
		Locks: []lockinfo.Info{lock("a", 1, time.Hour, 2), many}}
	for _, s := range []Snapshot{first, {At: at.Add(time.Second), Err: errors.New("away")}} {
		fatal.If(t, w.Add(s))
	}
	fatal.If(t, w.Close())
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	c, err := Open(path)
	fatal.If(t, err)
	defer c.Close()
	if c.Len() != 2 || c.Server != "redis://h" || c.Cut {
		t.Fatalf("%+v", c)
	}
	got := c.At(0)
	if got.Total != 7 || got.Took != first.Took || !got.At.Equal(at) || len(got.Locks) != 2 ||
		!reflect.DeepEqual(got.Locks[0], first.Locks[0]) {
		t.Errorf("got %+v", got)
	}
	if back := got.Locks[1]; back.Name != many.Name || back.Holders != 30 || back.Waiters != 200 ||
		len(back.Holds) != mostHolds || len(back.Queue) != mostQueue {
		t.Errorf("got %+v", back)
	}
	if got := c.At(1); got.Err == nil || got.Err.Error() != "away" {
		t.Errorf("got %+v", got)
	}
	if _, err := Create(path, ""); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a capture that exists: %v", err)
	}
}

func TestCaptureIsBounded(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "c"), "")
	fatal.If(t, err)
	defer w.Close()
	w.size = mostBytes - 100
	if err := w.Add(Snapshot{At: at, Locks: []lockinfo.Info{lock("a", 1, 0, 0)}}); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	long := lock(strings.Repeat("\x01", 1<<10), 1, 0, 0)
	for range mostHolds {
		long.Holds = append(long.Holds, long.Holds[0])
	}
	var locks []lockinfo.Info
	for range 600 {
		locks = append(locks, long)
	}
	w.size = 0
	if err := w.Add(Snapshot{At: at, Locks: locks}); err != nil || w.size > mostLine {
		t.Errorf("%v, %d bytes in one line", err, w.size)
	}
}

func TestOpenRefusesInWords(t *testing.T) {
	const head = `{"capture":"holdfast top","version":2,"server":"s","at":"2026-11-24T02:14:05Z"}` + "\n"
	const good = `{"at":"2026-11-24T02:14:05Z","took_seconds":0.1,"total":0,"locks":[]}` + "\n"
	dir := t.TempDir()
	for name, test := range map[string]struct{ text, want string }{
		"empty":      {"", "no capture"},
		"text":       {"hello\nworld\n", "no capture"},
		"other JSON": {`{"version":1}` + "\n", "no capture"},
		"binary":     {strings.Repeat("\x00", 100_000), "no capture"},
		"newer": {strings.Replace(head, `"version":2`, `"version":7`, 1) + good,
			"format 7, and this holdfast reads 2"},
		"the version before": {strings.Replace(head, `"version":2`, `"version":1`, 1) + good,
			"format 1, and this holdfast reads 2"},
		"no snapshot": {head, "no snapshot"},
		"only a cut":  {head + good[:20], "no snapshot"},
		"long line":   {head + strings.Repeat("x", mostLine+1), "snapshot 1 has more than 32 MiB"},
	} {
		path := filepath.Join(dir, "f")
		fatal.If(t, os.WriteFile(path, []byte(test.text), 0o600))
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a directory: %v", err)
	}
	big := filepath.Join(dir, "big")
	fatal.If(t, os.WriteFile(big, nil, 0o600))
	fatal.If(t, os.Truncate(big, mostBytes+1))
	if _, err := Open(big); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("a large file: %v", err)
	}
	path := filepath.Join(dir, "cut")
	fatal.If(t, os.WriteFile(path, []byte(head+good+"{\"broken\n"+`{"locks":[{}]}`+"\n"+good[:10]), 0o600))
	c, err := Open(path)
	fatal.If(t, err)
	defer c.Close()
	if c.Len() != 3 || !c.Cut {
		t.Errorf("%d snapshots, cut: %v", c.Len(), c.Cut)
	}
	for i, want := range []string{"", "snapshot 2 of the capture cannot be read",
		"snapshot 3 of the capture cannot be read"} {
		if got := fmt.Sprint(c.At(i).Err); want == "" && got != "<nil>" || !strings.Contains(got, want) {
			t.Errorf("snapshot %d: %v", i+1, got)
		}
	}
}

// Shards stand in the order of their numbers, and the order has no cycle: every pair is tried.
func TestCompareNames(t *testing.T) {
	names := []string{"", "2", "10", "a", "a/", "a/0", "a/00", "a/02", "a/2", "a/10", "a/99999999999999999999",
		"a/1x", "a/1x2", "b/1"}
	for i, a := range names {
		for j, b := range names {
			if got, want := CompareNames(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("%q and %q: %d, want %d", a, b, got, want)
			}
		}
	}
}
