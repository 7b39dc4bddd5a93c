package top

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

var at = time.Date(2026, 11, 24, 2, 14, 5, 0, time.UTC)

// A fake is a server whose names the test says.
type fake struct {
	locks  []lockinfo.Info
	err    error
	broken []string
}

func (f *fake) List(context.Context, holdfast.ListOptions) iter.Seq2[lockinfo.Info, error] {
	return func(yield func(lockinfo.Info, error) bool) {
		for _, info := range f.locks {
			if !yield(info, nil) {
				return
			}
		}
		if f.err != nil {
			yield(lockinfo.Info{}, f.err)
		}
	}
}

func (f *fake) Inspect(_ context.Context, name string) (lockinfo.Info, error) {
	for _, info := range f.locks {
		if info.Name == name {
			return info, f.err
		}
	}
	return lockinfo.Info{Name: name, At: at}, f.err
}

func (f *fake) Break(_ context.Context, name string, token int64) error {
	f.broken = append(f.broken, fmt.Sprint(name, " ", token))
	if f.err != nil {
		return f.err
	}
	for i, info := range f.locks {
		for j, h := range info.Holds {
			if info.Name == name && h.Token == token {
				f.locks[i].Holds = slices.Clone(info.Holds) // what was told before stays as it was
				f.locks[i].Holds[j].State, f.locks[i].Holds[j].By = lockinfo.StateBroken, "me"
				return nil
			}
		}
	}
	return holdfast.ErrNotHeld
}

func lock(name string, token int64, held time.Duration, waiters int) lockinfo.Info {
	info := lockinfo.Info{Name: name, Kind: "mutex", At: at, Holders: 1, Waiters: waiters,
		Holds: []lockinfo.Hold{{State: lockinfo.StateHeld, Label: "l-" + name, Host: "h", PID: 1,
			Mode: lockinfo.ModeExclusive, Token: token,
			Since: at.Add(-held), Remaining: 13 * time.Second, TTL: 15 * time.Second, Renewed: at.Add(-time.Second)}}}
	for i := range waiters {
		info.Queue = append(info.Queue, lockinfo.Waiter{ID: "abcdefgh2345672" + fmt.Sprint(i), Place: i + 1, Label: "w",
			Mode: lockinfo.ModeExclusive, Since: at, Alive: lockinfo.AliveYes})
	}
	return info
}

// A rig drives a Model without a terminal. It runs the commands of the Model at once.
type rig struct {
	*testing.T
	*Model
	fake *fake
}

func newRig(t *testing.T, locks ...lockinfo.Info) *rig {
	zone := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = zone })
	f := &fake{locks: locks}
	first, _ := Look(t.Context(), f, snapshot.ByAge.Compare)
	first.At, first.Took = at, 4*time.Millisecond
	m := New(t.Context(), Config{Server: f, First: first, Title: "redis://h",
		Wrong: func(err error) string { return err.Error() }})
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 14})
	return &rig{t, m, f}
}

// look is a second on.
func (r *rig) look() {
	msg := r.Model.poll()().(snapshotMessage)
	msg.At, msg.Took = at, 4*time.Millisecond
	r.Update(msg)
	if cmd := r.inspect(); cmd != nil {
		r.Update(cmd())
	}
}

// press presses keys. Each is a name, or a text that is typed.
func (r *rig) press(keys ...string) {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown,
		"tab": tea.KeyTab, "left": tea.KeyLeft,
		"right": tea.KeyRight, "end": tea.KeyEnd, "home": tea.KeyHome, "pgdown": tea.KeyPgDown,
		"backspace": tea.KeyBackspace}
	for _, key := range keys {
		if code, special := codes[key]; special {
			r.run(tea.KeyPressMsg{Code: code})
			continue
		}
		for _, c := range key {
			r.run(tea.KeyPressMsg{Code: c, Text: string(c)})
		}
	}
}

func (r *rig) run(msg tea.Msg) {
	_, cmd := r.Update(msg)
	if cmd == nil {
		return
	}
	if msg := cmd(); msg != nil {
		r.run(msg)
	}
}

func (r *rig) screen() string {
	var lines []string
	for line := range strings.Lines(ansi.Strip(r.View().Content)) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

func (r *rig) want(want string) {
	r.Helper()
	if got := r.screen(); got != want {
		r.Errorf("got:%s\nwant:%s", got, want)
	}
}

func (r *rig) has(texts ...string) {
	r.Helper()
	for _, text := range texts {
		if got := r.screen(); !strings.Contains(got, text) {
			r.Errorf("no %q in:%s", text, got)
		}
	}
}

const head = `
holdfast top  02:14:05  3 names, 1 contended, 0 late  redis://h
looking every second (it took 4 ms): what lasts for less may not be seen

`

func threeLocks() []lockinfo.Info {
	return []lockinfo.Info{lock("b", 11, time.Minute, 0), lock("evil\x1b[2J", 12, time.Hour, 0),
		lock("c", 13, time.Second, 2)}
}

func TestListIsSorted(t *testing.T) {
	r := newRig(t, threeLocks()...)
	r.want(head + `    NAME           KIND   STATE  HOLDER           TOKEN   HELD  LEFT  WAIT
>   "evil\x1b[2J"  mutex  held   "l-evil\x1b[2J"     12  1h00m   13s     0
    b              mutex  held   l-b                 11  1m00s   13s     0
    c              mutex  held   l-c                 13   1.0s   13s     2






↑↓ choose  enter more  o oldest  c contended  w waits  n name  / filter  b break  q quit
`)
	r.press("c")
	if r.locks[0].Name != "c" || r.cursor != "evil\x1b[2J" || r.row != 1 {
		t.Errorf("by waiters: %s first, cursor at %q, row %d", r.locks[0].Name, r.cursor, r.row)
	}
	r.press("n")
	if r.locks[0].Name != "b" || r.row != 2 {
		t.Errorf("by name: %s first, row %d", r.locks[0].Name, r.row)
	}
	r.press("o", "end")
	if r.cursor != "c" {
		t.Errorf("cursor at %q", r.cursor)
	}
}

func TestChangesAreMarked(t *testing.T) {
	r := newRig(t, threeLocks()...)
	r.fake.locks[0] = lock("b", 20, 0, 0)
	r.fake.locks = append(r.fake.locks, lock("d", 30, 0, 0))
	r.look()
	r.has("\n *  b  ", "\n +  d  ")
	r.look()
	if got := r.screen(); strings.Contains(got, "*") || strings.Contains(got, "+") {
		t.Errorf("marks stay:%s", got)
	}
}

func TestFilter(t *testing.T) {
	r := newRig(t, threeLocks()...)
	r.press("/", "L-Bx", "backspace")
	r.has("filter: L-B_")
	if len(r.locks) != 1 || r.cursor != "b" {
		t.Errorf("%d names, cursor at %q", len(r.locks), r.cursor)
	}
	r.press("q", "backspace", "enter") // q is a letter here
	r.has("filter: L-B, 1 names (esc drops it)")
	r.press("/", "zzz", "enter")
	r.has("no such name is held or waited for")
	r.press("enter", "b", "down") // nothing to do them with
	r.press("esc")
	if len(r.locks) != 3 {
		t.Errorf("%d names", len(r.locks))
	}
}

// Of many names the filter's are kept, whatever the order.
func TestFilterReachesBehindTheFirst(t *testing.T) {
	var locks []lockinfo.Info
	for i := range 3 * kept {
		locks = append(locks, lock(fmt.Sprintf("n%04d", i), int64(i+1), time.Hour-time.Duration(i)*time.Second, 0))
	}
	r := newRig(t, locks...)
	r.has("3000 names", "the first 1000 by age")
	r.press("/", "n2999", "enter")
	r.look()
	if len(r.locks) != 1 || r.now.Total != 3*kept || len(r.now.Locks) != kept {
		t.Errorf("%d of %d names, %d kept", len(r.locks), r.now.Total, len(r.now.Locks))
	}
}

func TestLongListsScroll(t *testing.T) {
	var locks []lockinfo.Info
	for i := range 50 {
		locks = append(locks, lock(fmt.Sprintf("n%02d", i), int64(i+1), time.Hour-time.Duration(i)*time.Minute, 0))
	}
	r := newRig(t, locks...)
	r.press("down", "pgdown", "pgdown", "down")
	r.has("\n>   n18 ")
	r.press("home")
	r.has("\n>   n00 ")
	r.press("end")
	r.has("\n>   n49 ")
	r.Update(tea.WindowSizeMsg{Width: 40, Height: 8})
	r.has("\n>   n49 ")
	for _, size := range []tea.WindowSizeMsg{{Width: 1, Height: 1}, {Width: 0, Height: 0}, {Width: 300, Height: 3}} {
		r.Update(size)
		if lines := strings.Count(r.View().Content, "\n") + 1; lines > max(size.Height, 1) {
			t.Errorf("%v: %d lines", size, lines)
		}
	}
}

func TestDetail(t *testing.T) {
	r := newRig(t, threeLocks()...)
	r.press("end", "enter")
	r.want(head + `name     c
kind     mutex
state    held
holds    1
waiting  2

HOLDER  HOST/PID  MODE       TOKEN  SINCE           HELD  LEFT  RENEWED   STATE
l-c     h/1       exclusive     13  11-24 02:14:04  1.0s   13s  1.0s ago  held


esc back  ↑↓ scroll  tab next hold  b break  q quit
`)
	r.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	r.has("    1  abcdefgh23456720  w")
	r.fake.locks = r.fake.locks[:2]
	r.look()
	r.has("state    free")
	r.press("b")
	r.has("nobody holds c")
	r.fake.err = errors.New("away\x1b[2J")
	r.look()
	r.has("as of 02:14:05: away\\x1b[2J")
	r.press("esc")
	r.has(`>   b `)
}

func TestBreakAsks(t *testing.T) {
	r := newRig(t, threeLocks()...)
	r.press("b")
	r.has(`Break the hold of "l-evil\x1b[2J" on "evil\x1b[2J", token 12?`)
	r.press("n")
	r.has("nothing was broken")
	r.press("b", "esc", "b", "enter", "b", "q")
	if len(r.fake.broken) > 0 {
		t.Fatalf("broken without an answer: %q", r.fake.broken)
	}
	r.press("b", "y")
	if len(r.fake.broken) != 1 || r.fake.broken[0] != "evil\x1b[2J 12" {
		t.Fatalf("broken: %q", r.fake.broken)
	}
	r.has(`broken: token 12 of "evil\x1b[2J"; others get in when its holder has stopped`)
	r.press("down", "b") // the hold changes while the question is there
	r.fake.locks[0] = lock("b", 99, 0, 0)
	r.look()
	r.press("y")
	if r.fake.broken[1] != "b 11" {
		t.Errorf("broken: %q, and not the hold that was shown", r.fake.broken[1])
	}
	r.has("nothing was broken: token 11 of b is not held any more")
	r.fake.err = errors.New("no answer")
	r.press("b", "y")
	r.has("not known to be broken: token 99 of b: no answer")
}

func TestBreakChoosesAHold(t *testing.T) {
	several := lock("docs", 5, time.Minute, 0)
	several.Holders = 2
	several.Holds = append(several.Holds, several.Holds[0])
	several.Holds[1].Token, several.Holds[1].Label = 6, "other"
	r := newRig(t, several)
	r.press("b")
	r.has("docs has several holds: enter shows them, and tab chooses one")
	r.press("enter", "tab")
	r.has("chosen: hold 2 of 2, token 6, of other")
	r.fake.locks[0].Holds = []lockinfo.Hold{several.Holds[1], several.Holds[0]}
	r.look() // the same hold, at another place
	r.has("token 6, of other")
	r.press("b", "y")
	if len(r.fake.broken) != 1 || r.fake.broken[0] != "docs 6" {
		t.Errorf("broken: %q", r.fake.broken)
	}
}

// A recorded is looks in memory, that were stored and can be read.
type recorded struct {
	looks []snapshot.Snapshot
	full  bool
}

func (r *recorded) Add(s snapshot.Snapshot) error {
	if r.full {
		return snapshot.ErrFull
	}
	r.looks = append(r.looks, s)
	return nil
}
func (r *recorded) Len() int                   { return len(r.looks) }
func (r *recorded) At(i int) snapshot.Snapshot { return r.looks[i] }

func TestCapture(t *testing.T) {
	live := newRig(t, threeLocks()...)
	looks := &recorded{}
	live.recorder = looks
	all := live.fake.locks
	for i := range 100 {
		all[0] = lock("b", int64(100+i), 0, i)
		if live.fake.locks = all; i == 2 {
			live.fake.locks = all[:2]
		}
		live.look()
	}
	live.fake.err = errors.New("away")
	live.look()
	looks.full = true
	live.look()
	live.has("nothing is captured any more: the capture has 256 MiB, and gets no larger")

	m := New(t.Context(), Config{Recording: looks, Title: "redis://h", Cut: true,
		Wrong: func(err error) string { return err.Error() }})
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 14})
	r := &rig{t, m, nil}
	if m.Init() != nil {
		t.Error("a capture is looked at again")
	}
	r.has("capture, snapshot 1 of 101", "the last snapshot is not complete", "l-b                100")
	r.press("left", "right")
	r.has("snapshot 2 of 101", "*  b ", "l-b                101")
	r.press("right", "right", "right", "end", "up")
	chosen := r.cursor
	if r.press("left"); chosen != "c" || r.cursor != chosen { // it is not in the snapshot before
		t.Errorf("the cursor went from %q to %q", chosen, r.cursor)
	}
	r.press("left", "left", "c", "]", "home", "enter")
	r.has("snapshot 62 of 101", "name     b", "waiting  61")
	r.press("right")
	r.has("waiting  62")
	r.press("b")
	r.has("this is a capture: nothing can be broken")
	r.press("esc", "]]")
	r.has("snapshot 101 of 101") // where the server was away
	if !strings.Contains(r.View().Content, "away") {
		t.Errorf("got:%s", r.screen())
	}
}

// The longest wait comes first, and the detail of a name says what its holders wait for.
func TestWhyANameIsWaitedFor(t *testing.T) {
	first, second := lock("a", 11, time.Minute, 1), lock("b", 12, time.Hour, 1)
	first.Holds[0].Host, first.Holds[0].PID = "h", 1
	second.Queue = []lockinfo.Waiter{{Place: 1, Host: "h", PID: 1, Since: at.Add(-time.Minute)}}
	second.WaitingSince = at.Add(-time.Minute)
	r := newRig(t, first, second)
	r.press("w")
	if r.locks[0].Name != "b" {
		t.Errorf("by the longest wait: %s first", r.locks[0].Name)
	}
	r.has("2 contended, 0 late, longest wait 1m00s", "LONGEST")
	r.press("n", "home", "enter", "end")
	r.has("a: held by l-a (h/1) for 1m00s, token 11; it perhaps waits for b for 1m00s", "root: b is held by l-b")
}
