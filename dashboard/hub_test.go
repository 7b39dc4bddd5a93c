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
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func TestOneLookASecondForTenViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(held("a", "A", 1))
		h := newHandler(f, nil)
		<-time.After(time.Minute)
		if n := f.lists(); n != 0 {
			t.Fatalf("%d looks while nobody viewed", n)
		}
		var viewers []*viewer
		for range 10 {
			viewers = append(viewers, view(h))
		}
		<-time.After(10*time.Second + time.Millisecond)
		for _, v := range viewers {
			for range 11 {
				v.look(t)
			}
			v.end()
		}
		if n := f.lists(); n != 11 {
			t.Errorf("%d looks in 10 s, want 11", n)
		}
		<-time.After(time.Minute)
		if n := f.lists(); n != 11 {
			t.Errorf("%d looks after the last viewer had left", n-11)
		}
	})
}

// A change that a look just missed is told within a second of it, also if a look takes long.
func TestChangeIsToldWithinASecond(t *testing.T) {
	for _, takes := range []time.Duration{0, 50 * time.Millisecond, 190 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(held("a", "A", 1))
			f.takes = takes
			v := view(newHandler(f, nil))
			defer v.end()
			v.look(t)
			for range 5 {
				f.locked(func() { f.begun = nil })
				for f.lists() == 0 {
					<-time.After(time.Millisecond)
				}
				missed := time.Now() // a look has begun, and has read all names
				v.look(t)
				v.look(t)
				if took := time.Since(missed); took > time.Second {
					t.Errorf("a look takes %v: the change was told after %v", takes, took)
				}
			}
		})
	}
}

// Pages that are loaded again and again cost no more than one that stays.
func TestReloadsDoNotLookMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(held("a", "A", 1))
		h := newHandler(f, nil)
		begin := time.Now()
		for time.Since(begin) < 10*time.Second {
			v := view(h)
			<-time.After(100 * time.Millisecond)
			v.end()
		}
		if n := f.lists(); n > 11 {
			t.Errorf("%d looks in 10 s", n)
		}
	})
}

func TestSlowLooksAreFollowedByRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(held("a", "A", 1))
		f.takes = 2 * time.Second
		v := view(newHandler(f, nil))
		<-time.After(time.Minute)
		v.end()
		for i := 1; i < len(f.begun); i++ {
			if apart := f.begun[i].Sub(f.begun[i-1]); apart < 8*time.Second {
				t.Errorf("two looks of 2 s began %v apart", apart)
			}
		}
		if n := f.lists(); n < 7 {
			t.Errorf("%d looks in a minute, want 7", n)
		}
	})
}

func TestOnlyDifferencesAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(held("a", "A", 1), held("b", "B", 2))
		v := view(newHandler(f, nil))
		defer v.end()
		first := v.look(t)
		if !first.Whole && len(first.Changed) != 2 || len(first.Changes) != 0 {
			t.Errorf("the first look is %+v", first)
		}
		later := held("a", "A", 1) // the same hold, a second later
		later.At, later.Holds[0].Remaining = later.At.Add(time.Second), 19*time.Second
		f.set(later)
		if s := v.look(t); len(s.Changed)+len(s.Gone)+len(s.Changes) != 0 {
			t.Errorf("nothing changed, and told was %+v", s)
		}
		renewed := later
		renewed.Holds = []lockinfo.Hold{later.Holds[0]}
		renewed.Holds[0].Remaining = 30 * time.Second
		f.set(renewed)
		if s := v.look(t); len(s.Changed) != 1 || len(s.Changes) != 0 {
			t.Errorf("a renewed hold is %+v", s)
		}
		f.set(held("b", "C", 3))
		f.locked(func() { delete(f.names, "a") })
		s := v.look(t)
		if len(s.Changed) != 1 || s.Changed[0].Lock.Name != "b" || len(s.Gone) != 1 {
			t.Errorf("the changes were told as %+v", s)
		}
		if got := events(s.Changes); got != "held b, freed a" {
			t.Errorf("the events are %s", got)
		}
	})
}

func events(changes []lockinfo.Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, string(c.Event)+" "+c.After.Name)
	}
	return strings.Join(out, ", ")
}

// What the stream tells of a change is a summary, before and after it.
func TestChangesAreSummaries(t *testing.T) {
	many := held("x", "A", 1)
	many.Holders, many.Waiters, many.Queue = 50, 1, []lockinfo.Waiter{{ID: "i", Place: 1}}
	for range 49 {
		many.Holds = append(many.Holds, many.Holds[0])
	}
	first := newSight(nil, 1)
	first.add(held("x", "A", 1))
	second := newSight(first.names, 2)
	second.add(many)
	third := newSight(second.names, 3)
	third.end()
	var changes []lockinfo.Change
	for _, text := range append(second.changes, third.changes...) {
		var c lockinfo.Change
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c)
	}
	if got := events(changes); got != "holders x, waiting x, freed x" {
		t.Fatalf("got %s", got)
	}
	for _, c := range changes {
		if len(c.Before.Holds) > 1 || len(c.After.Holds) > 1 || c.Before.Queue != nil || c.After.Queue != nil {
			t.Errorf("got %+v", c)
		}
	}
}

// A stream goes on where it is, however slow it is: it gets each row as it is by then, and which
// names are gone. It is told of the changes between two looks only if it had all of the first.
func TestSlowStream(t *testing.T) {
	const names = 3 * mostPart / 1000
	h, r, f := newHub(newFake()), &run{wake: make(chan struct{})}, feed{}
	label, token, number := strings.Repeat("x", 1000), int64(0), 0
	page, rows := map[string]int64{}, map[uint64]string{}
	look := func(from, to int) {
		number, token = number+1, token+1
		s := newSight(r.names, number)
		for i := range names {
			info := held(fmt.Sprint(i), label, 0)
			if e := r.names[info.Name]; e != nil {
				info = e.info
			}
			if from <= i && i < to {
				info = held(info.Name, label, token)
			}
			if token < 4 || i > 0 {
				s.add(info)
			}
		}
		s.end()
		r.publish(readiness{}, 0, s)
	}
	read := func() (told seen, is bool) {
		text, _ := h.news(r, &f)
		if text == nil {
			return told, false
		}
		if len(text) > mostPart+mostTold+4<<10 {
			t.Errorf("a part has %d bytes", len(text))
		}
		if err := json.Unmarshal(text, &told); err != nil {
			t.Fatal(err)
		}
		if told.Whole {
			clear(page)
		}
		for _, row := range told.Changed {
			page[row.Lock.Name], rows[row.ID] = row.Lock.Holds[0].Token, row.Lock.Name
		}
		for _, id := range told.Gone {
			delete(page, rows[id])
		}
		return told, true
	}
	right := func() {
		t.Helper()
		for told, is := read(); is; told, is = read() {
			if len(told.Changes) > 0 {
				t.Errorf("it is told of changes: %+v", told.Changes[0])
			}
		}
		want := map[string]int64{}
		for name, e := range r.names {
			want[name] = e.info.Holds[0].Token
		}
		if !maps.Equal(page, want) {
			t.Errorf("look %d: the page has %v, want %v", number, page, want)
		}
	}
	look(0, 0)
	if first, _ := read(); !first.Whole || !first.Part {
		t.Errorf("the first part: whole %v, part %v", first.Whole, first.Part)
	}
	look(0, 5) // rows that the page has already, and that it has not
	if next, _ := read(); next.Whole || !next.Part {
		t.Errorf("the second part: whole %v, part %v", next.Whole, next.Part)
	}
	look(names-5, names)
	look(0, 0) // a name is gone
	right()
	look(3, 4)
	if told, _ := read(); told.Part || len(told.Changed) != 1 || events(told.Changes) != "held 3" {
		t.Errorf("the next look is told as %+v", told)
	}
	look(1, names) // more than a part
	if told, _ := read(); !told.Part || len(told.Changes) == 0 {
		t.Errorf("a large look is told as part %v with %d changes", told.Part, len(told.Changes))
	}
	look(1, 2)
	look(1, 3)
	right()
	// More names were gone than are remembered: it begins anew.
	look(5, 6)
	r.forgotten = number
	if told, _ := read(); !told.Whole {
		t.Error("it does not begin anew")
	}
	right()
}

// A viewer who comes later gets the whole list.
func TestLateViewerGetsWholeList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(held("a", "A", 1), held("b", "B", 2))
		h := newHandler(f, nil)
		first := view(h)
		defer first.end()
		first.look(t)
		first.look(t)
		late := view(h)
		defer late.end()
		if s := late.look(t); !s.Whole || len(s.Changed) != 2 {
			t.Errorf("a viewer who comes later gets %+v", s)
		}
	})
}

func TestServerAwayAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(held("a", "A", 1))
		f.err = errors.New("no route")
		v := view(newHandler(f, nil))
		defer v.end()
		if s := v.look(t); s.Error != "no route" || len(s.Changed) != 0 {
			t.Errorf("before the server was seen: %+v", s)
		}
		f.locked(func() { f.err = nil })
		s := v.look(t)
		if s.Error != "" || len(s.Changed) != 1 || len(s.Changes) != 0 {
			t.Errorf("when it is seen first: %+v", s)
		}
		at := s.At
		f.locked(func() { f.err = errors.New("no route") })
		s = v.look(t)
		if s.Error != "no route" || len(s.Gone) != 0 || !s.At.Equal(at) {
			t.Errorf("while the server is away: %+v", s)
		}
		f.locked(func() { f.err = nil })
		if s := v.look(t); s.Error != "" || len(s.Changed)+len(s.Changes) != 0 {
			t.Errorf("when it is back: %+v", s)
		}
		f.locked(func() { f.ready = errors.New("it may evict keys") })
		<-time.After(readyEvery)
		for range 5 {
			s = v.look(t)
		}
		if s.Ready != "it may evict keys" {
			t.Errorf("ready is %q", s.Ready)
		}
	})
}

// The masters are told without a name too, and while no majority answers.
func TestMastersWithoutNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.masters = []lockinfo.Master{
			{Node: "node 1", Counts: true, Age: time.Hour}, {Node: "node 2", Why: "its memory is young", Age: time.Second},
			{Node: "node 3", Why: "refused", Err: errors.New("refused")},
		}
		v := view(newHandler(f, nil))
		defer v.end()
		if s := v.look(t); !reflect.DeepEqual(s.Masters, f.masters) {
			t.Errorf("the masters are %+v", s.Masters)
		}
		f.locked(func() { f.err, f.masters[1].Counts = &holdfast.QuorumError{Op: "list"}, true })
		s := v.look(t)
		for range 9 { // it takes 5 s until they are asked again
			if s.Error == "" || len(s.Masters) != 3 {
				t.Errorf("with a list that fails: error %q, masters %+v", s.Error, s.Masters)
			}
			s = v.look(t)
		}
		if !s.Masters[1].Counts {
			t.Errorf("later the masters are %+v", s.Masters)
		}
	})
}

func TestBounds(t *testing.T) {
	s := newSight(nil, 1)
	for i := range mostNames + 5 {
		s.add(held(fmt.Sprint(i), "A", 1))
	}
	if len(s.names) != mostNames || s.more != 5 {
		t.Errorf("%d names are kept, and %d counted", len(s.names), s.more)
	}
	if len(s.changes) != mostChanges || s.unseen != mostNames-mostChanges {
		t.Errorf("%d changes are kept, and %d counted", len(s.changes), s.unseen)
	}
	s = newSight(nil, 1)
	long := strings.Repeat("x", 1<<20)
	for i := range 100 {
		s.add(held(fmt.Sprint(i), long, 1))
	}
	if n := len(s.names); n > 64 || n+s.more != 100 {
		t.Errorf("%d names of 1 MiB are kept, and %d counted", n, s.more)
	}
}

// A stuck is a page that does not read: a write waits until its deadline.
type stuck struct {
	http.ResponseWriter
	mu       sync.Mutex
	writing  []byte
	deadline time.Time
}

func (s *stuck) Flush() {}

func (s *stuck) SetWriteDeadline(deadline time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = deadline
	return nil
}

func (s *stuck) Write(text []byte) (int, error) {
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

// What pages that do not read keep is less than one copy of the list, although each of them came at
// another look, and all names change. Their streams end.
func TestPagesThatDoNotReadKeepLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names, long, looks = 700, 16 << 10, 3
		label := strings.Repeat("x", long)
		f := newFake()
		change := func(token int64) {
			for i := range names {
				f.set(held(fmt.Sprint(i), label, token))
			}
		}
		h := newHandler(f, nil)
		var pages []*stuck
		var streams sync.WaitGroup
		for look := range looks {
			change(int64(look + 1))
			for range (mostViewers - 1) / looks {
				s := &stuck{ResponseWriter: httptest.NewRecorder()}
				pages = append(pages, s)
				streams.Go(func() { h.ServeHTTP(s, httptest.NewRequest("GET", "/events", nil)) })
			}
			<-time.After(interval)
			synctest.Wait()
		}
		kept := map[*byte]int{}
		for _, s := range pages {
			s.mu.Lock()
			kept[unsafe.SliceData(s.writing)] = cap(s.writing)
			s.mu.Unlock()
		}
		sum := 0
		for _, bytes := range kept {
			sum += bytes
		}
		if sum > names*long {
			t.Errorf("%d pages keep %d buffers of %d bytes, and the list has more than %d", len(pages), len(kept), sum, names*long)
		}
		begun := time.Now()
		streams.Wait()
		if took := time.Since(begun); took > patience {
			t.Errorf("the streams ended after %v", took)
		}
	})
}

// Nor do requests whose answers nobody reads keep more than a few: the next one waits for a place,
// and is answered.
func TestAnswersThatNobodyReadsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var infos []lockinfo.Info
		for i := range 10 {
			infos = append(infos, held(fmt.Sprint(i), "A", 1))
		}
		h := newHandler(newFake(infos...), nil)
		v := view(h)
		v.look(t)
		var pages []*stuck
		var answers sync.WaitGroup
		for range 20 {
			s := &stuck{ResponseWriter: httptest.NewRecorder()}
			pages = append(pages, s)
			answers.Go(func() { h.ServeHTTP(s, httptest.NewRequest("GET", "/process?host=host-A&pid=7", nil)) })
		}
		synctest.Wait()
		kept := 0
		for _, s := range pages {
			s.mu.Lock()
			if s.writing != nil {
				kept++
			}
			s.mu.Unlock()
		}
		if kept != mostAnswers {
			t.Errorf("%d answers are kept, and not %d", kept, mostAnswers)
		}
		begun := time.Now()
		if w := get(h, "/lock?name=1"); w.Code != 200 || time.Since(begun) > 20/mostAnswers*patience {
			t.Errorf("one more request is answered after %v: %d", time.Since(begun), w.Code)
		}
		answers.Wait()
		v.end()
	})
}

func TestViewersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(newFake(), nil)
		var viewers []*viewer
		for range mostViewers {
			v := view(h)
			v.look(t)
			viewers = append(viewers, v)
		}
		if w := get(h, "/events"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("one more viewer gets %d", w.Code)
		}
		for _, v := range viewers {
			v.end()
		}
		v := view(h)
		v.look(t)
		v.end()
	})
}

// Names and labels arrive as JSON text: no byte of them can be markup or end the event.
func TestTextsOfOthersStayText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const evil = "</script><img src=x onerror=alert(1)>\n\ndata: {}\n\u202e\x1b[31m"
		f := newFake(held(evil, evil, 1), held("bytes\xff", "A", 2))
		h := newHandler(f, nil)
		v := view(h)
		defer v.end()
		for e := range v.events {
			if strings.ContainsAny(string(e.data), "<>\n\x1b") {
				t.Errorf("the stream has markup: %s", e.data)
			}
			if e.name == "look" {
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
		if body := get(h, "/lock?name=bytes%FF"); body.Code != 200 || !strings.Contains(body.Body.String(), `"typed":"bytes\\xff"`) {
			t.Errorf("%d: a name of bytes is %s", body.Code, body.Body)
		}
	})
}
