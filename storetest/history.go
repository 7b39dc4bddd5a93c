package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func histories() []test {
	return []test{
		{"tells who held a name, the newest first", historyTells, stream | leaves},
	}
}

// keeping is a change of a client's configuration: it keeps a history.
func keeping(c *holdfast.Config) { c.History, c.SlowWait = 1000, time.Millisecond }

// awaitHistory reads the history of a name until it has so many entries.
func (e *env) awaitHistory(c *client, name string, since time.Time, want int) (entries []lockinfo.Entry) {
	e.Helper()
	if !soon(func() bool {
		entries = nil
		for entry, err := range c.History(e.ctx(), name, since) {
			if err != nil {
				e.Fatalf("History: %v", err)
			}
			entries = append(entries, entry)
		}
		return len(entries) >= want
	}) {
		e.Fatalf("got %+v, want %d entries", entries, want)
	}
	return entries
}

func historyTells(e *env) {
	const name, rival = "any \x00\xff} <b>name</b>", "\xff<script>"
	class := func(c *holdfast.Config) { c.Class = func(name string) string { return name[:3] + "\x80}" } }
	a, b, reader := e.client(label("A"), keeping, class), e.client(label(rival), keeping, class), e.client(class)
	first := e.lock(a.Mutex(name, holdfast.WithOwner("o\xfe")))
	giveUp := func(c *client) *holdfast.WaitError {
		ctx, cancel := context.WithCancel(e.ctx())
		w := e.startWaiting(ctx, c, c.Mutex(name).Lock)
		<-time.After(5 * time.Millisecond) // longer than SlowWait
		cancel()
		return w.awaitGiveUp(context.Canceled)
	}
	giveUp(b)
	brief, want := e.client(label("brief"), class, func(c *holdfast.Config) { c.History = 1000 }), 6
	if giveUp(brief).Waited >= time.Second { // the default of what is long; a busy machine may need it
		want++
	}
	e.must(brief.Close())
	e.breakHold(a, name, first.Token())
	_ = first.Release()
	second := e.lock(b.Mutex(name))
	e.release(second, e.lock(a.Mutex("another")))

	entries := e.awaitHistory(reader, name, time.Time{}, want)
	var got []string
	for _, n := range entries {
		if n.Label == "brief" && want == 7 {
			continue
		}
		got = append(got, fmt.Sprintf("%s %q %q %d %s %q %q", n.Kind, n.Label, n.Owner, n.Token, n.Reason, n.Holder,
			n.By))
		if n.Name != name || n.Host == "" || n.PID == 0 || n.At.IsZero() {
			e.Errorf("got %+v", n)
		}
		switch n.Kind {
		case lockinfo.EntryBroken:
		case lockinfo.EntryGaveUp:
			checkEqual(e, "waited for long", n.Waited >= 5*time.Millisecond, true)
			fallthrough
		default:
			checkEqual(e, "kind", n.LockKind, lockinfo.KindMutex)
		}
	}
	all := []string{
		fmt.Sprintf(`released %q "" %d  "" ""`, rival, second.Token()),
		fmt.Sprintf(`granted %q "" %d  "" ""`, rival, second.Token()),
		fmt.Sprintf(`lost "A" "o\xfe" %d broken "" "A"`, first.Token()),
		fmt.Sprintf(`broken "A" "" %d  "" ""`, first.Token()),
		fmt.Sprintf(`gave up %q "" 0 context "A" ""`, rival),
		fmt.Sprintf(`granted "A" "o\xfe" %d  "" ""`, first.Token()),
	}
	if got[len(got)-1] != all[5] || !slices.IsSortedFunc(entries, laterFirst) {
		e.Errorf("not the newest first: %+v", entries)
	}
	slices.Sort(got) // those between happen within milliseconds, in two processes
	slices.Sort(all)
	if !slices.Equal(got, all) {
		e.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(all, "\n"))
	}
	if later := e.awaitHistory(reader, name, entries[0].At.Add(time.Second), 0); len(later) > 0 {
		e.Errorf("since the last entry: %+v", later)
	}
	e.checkList(reader, holdfast.ListOptions{}) // a stream is no lock, and no foreign key
}

func laterFirst(a, b lockinfo.Entry) int { return b.At.Compare(a.At) }
