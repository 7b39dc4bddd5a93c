package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/lockinfo"
)

func TestHubPollsOnceASecondForTenViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(newHeld("a", "A", 1))
		h := newHandler(f, nil)
		<-time.After(time.Minute)
		if n := f.countPolls(); n != 0 {
			t.Fatalf("%d polls while nobody viewed", n)
		}
		var viewers []*viewer
		for range 10 {
			viewers = append(viewers, openStream(t, h))
		}
		<-time.After(10*time.Second + time.Millisecond)
		for _, v := range viewers {
			for range 11 {
				v.next(t)
			}
			v.close()
		}
		if n := f.countPolls(); n != 11 {
			t.Errorf("%d polls in 10 s, want 11", n)
		}
		<-time.After(time.Minute)
		if n := f.countPolls(); n != 11 {
			t.Errorf("%d polls after the last viewer had left", n-11)
		}
	})
}

// A change that a poll just missed is shown within a second of it, also if a poll takes long.
func TestHubShowsChangeWithinASecond(t *testing.T) {
	for _, takes := range []time.Duration{0, 50 * time.Millisecond, 190 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(newHeld("a", "A", 1))
			f.takes = takes
			v := openStream(t, newHandler(f, nil))
			v.next(t)
			for range 5 {
				f.change(func() { f.polls = nil })
				for f.countPolls() == 0 {
					<-time.After(time.Millisecond)
				}
				missed := time.Now() // a poll has begun, and has read all names
				v.next(t)
				v.next(t)
				if took := time.Since(missed); took > time.Second {
					t.Errorf("a poll takes %v: the change came after %v", takes, took)
				}
			}
		})
	}
}

func TestHubPausesAfterSlowPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(newHeld("a", "A", 1))
		f.takes = 2 * time.Second
		v := openStream(t, newHandler(f, nil))
		<-time.After(time.Minute)
		v.close()
		for i := 1; i < len(f.polls); i++ {
			if apart := f.polls[i].Sub(f.polls[i-1]); apart < 8*time.Second {
				t.Errorf("two polls of 2 s began %v apart", apart)
			}
		}
		if n := f.countPolls(); n < 7 {
			t.Errorf("%d polls in a minute, want 7", n)
		}
	})
}

func TestStreamSendsOnlyDifferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(newHeld("a", "A", 1), newHeld("b", "B", 2))
		v := openStream(t, newHandler(f, nil))
		first := v.next(t)
		if !first.Whole && len(first.Changed) != 2 || len(first.Changes) != 0 {
			t.Errorf("the first poll is %+v", first)
		}
		later := newHeld("a", "A", 1) // the same hold, a second later
		later.At, later.Holds[0].Remaining = later.At.Add(time.Second), 19*time.Second
		f.setNames(later)
		if s := v.next(t); len(s.Changed)+len(s.Gone)+len(s.Changes) != 0 {
			t.Errorf("nothing changed, and sent was %+v", s)
		}
		renewed := later
		renewed.Holds = []lockinfo.Hold{later.Holds[0]}
		renewed.Holds[0].Remaining = 30 * time.Second
		f.setNames(renewed)
		if s := v.next(t); len(s.Changed) != 1 || len(s.Changes) != 0 {
			t.Errorf("a renewed hold is %+v", s)
		}
		f.setNames(newHeld("b", "C", 3))
		f.change(func() { delete(f.names, "a") })
		s := v.next(t)
		if len(s.Changed) != 1 || s.Changed[0].Lock.Name != "b" || len(s.Gone) != 1 {
			t.Errorf("the changes came as %+v", s)
		}
		if got := eventsOf(s.Changes); got != "held b, freed a" {
			t.Errorf("the events are %s", got)
		}
	})
}

func eventsOf(changes []lockinfo.Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, string(c.Event)+" "+c.After.Name)
	}
	return strings.Join(out, ", ")
}

// What the stream says of a change is a summary, before and after it.
func TestSnapshotChangesAreSummaries(t *testing.T) {
	many := newHeld("x", "A", 1)
	many.Holders, many.Waiters, many.Queue = 50, 1, []lockinfo.Waiter{{ID: "i", Place: 1}}
	for range 49 {
		many.Holds = append(many.Holds, many.Holds[0])
	}
	first := newSnapshot(nil, 1)
	first.addName(newHeld("x", "A", 1))
	second := newSnapshot(first.names, 2)
	second.addName(many)
	third := newSnapshot(second.names, 3)
	third.finish()
	var changes []lockinfo.Change
	for _, text := range append(second.changes.list, third.changes.list...) {
		var c lockinfo.Change
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c)
	}
	if got := eventsOf(changes); got != "holders x, waiting x, freed x" {
		t.Fatalf("got %s", got)
	}
	for _, c := range changes {
		if len(c.Before.Holds) > 1 || len(c.After.Holds) > 1 || c.Before.Queue != nil || c.After.Queue != nil {
			t.Errorf("got %+v", c)
		}
	}
}

// A stream goes on where it is, however slow it is: it gets each row as it is by then, and which
// names are gone. It hears of the changes between two polls only if it had all of the first.
func TestStreamThatIsSlow(t *testing.T) {
	const names = 3 * maxPart / 1000
	h, r, c := newHub(newFake()), &run{wake: make(chan struct{})}, cursor{}
	label, token, number := strings.Repeat("x", 1000), int64(0), 0
	page, rows := map[string]int64{}, map[uint64]string{}
	poll := func(from, to int) {
		number, token = number+1, token+1
		s := newSnapshot(r.names, number)
		for i := range names {
			info := newHeld(fmt.Sprint(i), label, 0)
			if e := r.names[info.Name]; e != nil {
				info = e.info
			}
			if from <= i && i < to {
				info = newHeld(info.Name, label, token)
			}
			if token < 4 || i > 0 {
				s.addName(info)
			}
		}
		s.finish()
		r.publish(readiness{}, 0, s)
	}
	read := func() (got pageUpdate, ok bool) {
		text, _ := h.nextUpdate(r, &c)
		if text == nil {
			return got, false
		}
		if len(text) > maxPart+maxChangeBytes+4<<10 {
			t.Errorf("a part has %d bytes", len(text))
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got.Whole {
			clear(page)
		}
		for _, row := range got.Changed {
			page[row.Lock.Name], rows[row.ID] = row.Lock.Holds[0].Token, row.Lock.Name
		}
		for _, id := range got.Gone {
			delete(page, rows[id])
		}
		return got, true
	}
	checkPage := func() {
		t.Helper()
		for got, ok := read(); ok; got, ok = read() {
			if len(got.Changes) > 0 {
				t.Errorf("it has changes: %+v", got.Changes[0])
			}
		}
		want := map[string]int64{}
		for name, e := range r.names {
			want[name] = e.info.Holds[0].Token
		}
		if !maps.Equal(page, want) {
			t.Errorf("poll %d: the page has %v, want %v", number, page, want)
		}
	}
	poll(0, 0)
	if first, _ := read(); !first.Whole || !first.Part {
		t.Errorf("the first part: whole %v, part %v", first.Whole, first.Part)
	}
	poll(0, 5) // rows that the page has already, and that it has not
	if next, _ := read(); next.Whole || !next.Part {
		t.Errorf("the second part: whole %v, part %v", next.Whole, next.Part)
	}
	poll(names-5, names)
	poll(0, 0) // a name is gone
	checkPage()
	poll(3, 4)
	if got, _ := read(); got.Part || len(got.Changed) != 1 || eventsOf(got.Changes) != "held 3" {
		t.Errorf("the next poll is sent as %+v", got)
	}
	poll(1, names) // more than a part
	if got, _ := read(); !got.Part || len(got.Changes) == 0 {
		t.Errorf("a large poll is sent as part %v with %d changes", got.Part, len(got.Changes))
	}
	poll(1, 2)
	poll(1, 3)
	checkPage()
	// More names were gone than are remembered: it begins anew.
	poll(5, 6)
	r.forgotten = number
	if got, _ := read(); !got.Whole {
		t.Error("it does not begin anew")
	}
	checkPage()
	c = cursor{} // of a viewer who comes later
	if got, _ := read(); !got.Whole || len(got.Changes) > 0 {
		t.Errorf("a viewer who comes later gets %d changes, whole %v", len(got.Changes), got.Whole)
	}
	checkPage()
}

func TestStreamWhileServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(newHeld("a", "A", 1))
		f.err = errors.New("no route")
		v := openStream(t, newHandler(f, nil))
		if s := v.next(t); s.Error != "no route" || len(s.Changed) != 0 {
			t.Errorf("before the server was seen: %+v", s)
		}
		f.change(func() { f.err = nil })
		s := v.next(t)
		if s.Error != "" || len(s.Changed) != 1 || len(s.Changes) != 0 {
			t.Errorf("when it is seen first: %+v", s)
		}
		at := s.At
		f.change(func() { f.err = errors.New("no route") })
		s = v.next(t)
		if s.Error != "no route" || len(s.Gone) != 0 || !s.At.Equal(at) {
			t.Errorf("while the server is away: %+v", s)
		}
		f.change(func() { f.err = nil })
		if s := v.next(t); s.Error != "" || len(s.Changed)+len(s.Changes) != 0 {
			t.Errorf("when it is back: %+v", s)
		}
		f.change(func() { f.ready = errors.New("it may evict keys") })
		<-time.After(readyEvery)
		for range 5 {
			s = v.next(t)
		}
		if s.Ready != "it may evict keys" {
			t.Errorf("ready is %q", s.Ready)
		}
	})
}

func TestSnapshotIsBounded(t *testing.T) {
	s := newSnapshot(nil, 1)
	for i := range maxNames + 5 {
		s.addName(newHeld(fmt.Sprint(i), "A", 1))
	}
	if len(s.names) != maxNames || s.more != 5 {
		t.Errorf("%d names are kept, and %d counted", len(s.names), s.more)
	}
	if len(s.changes.list) != maxChanges || s.changes.omitted != maxNames-maxChanges {
		t.Errorf("%d changes are kept, and %d counted", len(s.changes.list), s.changes.omitted)
	}
	s = newSnapshot(nil, 1)
	long := strings.Repeat("x", 1<<20)
	for i := range 100 {
		info := newHeld(fmt.Sprint(i), "A", 1)
		info.Queue = []lockinfo.Waiter{{Label: long}}
		s.addName(info)
	}
	if n := len(s.names); n > 64 || n+s.more != 100 {
		t.Errorf("%d names of 1 MiB are kept, and %d counted", n, s.more)
	}
}

// A stuckPage does not read: a write waits until its deadline.
type stuckPage struct {
	http.ResponseWriter
	mu       sync.Mutex
	writing  []byte
	deadline time.Time
}

func (s *stuckPage) Flush() {}

func (s *stuckPage) SetWriteDeadline(deadline time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = deadline
	return nil
}

func (s *stuckPage) Write(text []byte) (int, error) {
	s.mu.Lock()
	s.writing = text
	left := time.Until(s.deadline)
	s.mu.Unlock()
	if len(text) < 1<<10 {
		return len(text), nil // the system takes the first bytes
	}
	if s.deadline.IsZero() {
		select {}
	}
	<-time.After(left)
	return 0, os.ErrDeadlineExceeded
}

// openStuck makes a request of a page that does not read its answer.
func openStuck(h http.Handler, path string, open *sync.WaitGroup) *stuckPage {
	s := &stuckPage{ResponseWriter: httptest.NewRecorder()}
	open.Go(func() { h.ServeHTTP(s, httptest.NewRequest("GET", path, nil)) })
	return s
}

// kept returns what waits to be read; nil if nothing does.
func (s *stuckPage) kept() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writing
}

// What pages that do not read keep is less than one copy of the list, although each of them came at
// another poll, and all names change. Their streams end.
func TestStreamsNotReadKeepLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names, long, polls, pagesEach = 220, 16 << 10, 3, 10
		label := strings.Repeat("x", long)
		f := newFake()
		change := func(token int64) {
			for i := range names {
				f.setNames(newHeld(fmt.Sprint(i), label, token))
			}
		}
		h := newHandler(f, nil)
		var pages []*stuckPage
		var streams sync.WaitGroup
		for poll := range polls {
			change(int64(poll + 1))
			for range pagesEach {
				pages = append(pages, openStuck(h, "/events", &streams))
			}
			<-time.After(interval)
			synctest.Wait()
		}
		kept := map[*byte]int{}
		for _, s := range pages {
			kept[unsafe.SliceData(s.kept())] = cap(s.kept())
		}
		sum := 0
		for _, bytes := range kept {
			sum += bytes
		}
		if sum > names*long {
			t.Errorf("%d pages keep %d buffers of %d bytes, and the list has more than %d", len(pages), len(kept), sum,
				names*long)
		}
		begun := time.Now()
		streams.Wait()
		if took := time.Since(begun); took > writeTimeout {
			t.Errorf("the streams ended after %v", took)
		}
	})
}

// Nor do requests whose answers nobody reads keep more than a few: the next one waits for a place,
// and is answered.
func TestDocumentsNotReadAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var infos []lockinfo.Info
		for i := range 10 {
			infos = append(infos, newHeld(fmt.Sprint(i), "A", 1))
		}
		h := newHandler(newFake(infos...), nil)
		openStream(t, h).next(t)
		var pages []*stuckPage
		var answers sync.WaitGroup
		for range 20 {
			pages = append(pages, openStuck(h, "/process?host=host-A&pid=7", &answers))
		}
		synctest.Wait()
		kept := 0
		for _, s := range pages {
			if s.kept() != nil {
				kept++
			}
		}
		if kept != maxDocuments {
			t.Errorf("%d answers are kept, and not %d", kept, maxDocuments)
		}
		begun := time.Now()
		if w := get(h, "/lock?name=1"); w.Code != 200 || time.Since(begun) > 20/maxDocuments*writeTimeout {
			t.Errorf("one more request is answered after %v: %d", time.Since(begun), w.Code)
		}
		answers.Wait()
	})
}

func TestHubRefusesTooManyViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(newFake(), nil)
		first := openStream(t, h)
		first.next(t)
		for range maxViewers - 1 {
			openStream(t, h).next(t)
		}
		if w := get(h, "/events"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("one more viewer gets %d", w.Code)
		}
		first.close()
		openStream(t, h).next(t)
	})
}

// Names and labels arrive as JSON text: no byte of them can be markup or end the event.
func TestStreamKeepsTextsOfOthersText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const evil = "</script><img src=x onerror=alert(1)>\n\ndata: {}\n\u202e\x1b[31m"
		f := newFake(newHeld(evil, evil, 1), newHeld("bytes\xff", "A", 2))
		h := newHandler(f, nil)
		v := openStream(t, h)
		for e := range v.events {
			if strings.ContainsAny(string(e.data), "<>\n\x1b") {
				t.Errorf("the stream has markup: %s", e.data)
			}
			if e.name == "update" {
				break
			}
		}
		if n := len(v.events); n != 0 {
			t.Errorf("a name made %d events", n)
		}
		body := get(h, "/lock?name="+url.QueryEscape(evil))
		if body.Code != 200 || strings.ContainsAny(strings.TrimSuffix(body.Body.String(), "\n"), "<>\n\x1b") {
			t.Errorf("%d: the detail has markup: %s", body.Code, body.Body)
		}
		if body := get(h, "/lock?name=bytes%FF"); body.Code != 200 ||
			!strings.Contains(body.Body.String(), `"typed":"bytes\\xff"`) {
			t.Errorf("%d: a name of bytes is %s", body.Code, body.Body)
		}
	})
}
