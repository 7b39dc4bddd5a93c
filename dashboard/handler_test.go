package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

func TestHandlerFilesAndHeaders(t *testing.T) {
	mounted := http.NewServeMux()
	mounted.Handle("/deep/locks/", http.StripPrefix("/deep/locks", newHandler(newFake(), nil)))
	for path, kind := range map[string]string{
		"": "text/html", "style.css": "text/css", "app.js": "text/javascript", "view.js": "text/javascript",
		"panel.js": "text/javascript", "graph.js": "text/javascript", "timeline.js": "text/javascript",
		"causes.js": "text/javascript", "changes.js": "text/javascript", "servers.js": "text/javascript",
		"strip.js": "text/javascript",
		"icon.svg": "image/svg+xml", "lock?name=x": "application/json", "missing": "text/plain",
	} {
		w := get(mounted, "/deep/locks/"+path)
		head := w.Header()
		if want := map[string]int{"lock?name=x": 503, "missing": 404}[path]; want == 0 && w.Code != 200 ||
			want > 0 && w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
		if !strings.HasPrefix(head.Get("Content-Type"), kind) {
			t.Errorf("%s: the type is %s", path, head.Get("Content-Type"))
		}
		policy := head.Get("Content-Security-Policy")
		for _, part := range []string{
			"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy lacks %s", path, part)
			}
		}
		if strings.Contains(policy, "unsafe") || head.Get("X-Content-Type-Options") != "nosniff" ||
			head.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: the headers are %v", path, head)
		}
	}
}

// The history of a name has at most 200 entries, and an error is told beside those before it.
func TestHandlerHistory(t *testing.T) {
	f := newFake()
	for range 250 {
		f.past = append(f.past, lockinfo.Entry{Kind: lockinfo.EntryGranted, Name: "long", At: epoch})
	}
	f.past = append(f.past, lockinfo.Entry{Kind: lockinfo.EntryLost, Name: "x", Label: "<b>", At: epoch,
		Reason: "gone"})
	f.err = errors.New("denied")
	h := newHandler(f, nil)
	want := `{"version":2,"entries":[{"at":"2026-01-02T03:04:05Z","event":"lost","name":"x",` +
		`"label":"\u003cb\u003e","reason":"gone"}],"error":"denied"}`
	if got := get(h, "/history?name=x").Body.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := strings.Count(get(h, "/history?name=long").Body.String(), "granted"); got != maxEntries {
		t.Errorf("%d entries", got)
	}
}

// A mount without a slash at its end leads to the one with it, and to no other host.
func TestHandlerMissingSlashIsAdded(t *testing.T) {
	for path, want := range map[string]string{
		"/locks": "./locks/", "/locks?x=1": "./locks/", "//evil.example": "./evil.example/"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RequestURI, r.URL.Path = path, ""
		w := serve(newHandler(newFake(), nil), r)
		if w.Code != 302 || w.Header().Get("Location") != want {
			t.Errorf("%s leads to %q", path, w.Header().Get("Location"))
		}
	}
}

// The page has no script, style or listener of its own, as the policy would refuse them, and
// nothing of another host. The scripts make no markup of texts.
func TestPageKeepsContentPolicy(t *testing.T) {
	refused := map[string]*regexp.Regexp{
		".html": regexp.MustCompile(`(?i)<style|style=|\son\w+=|<script[^>]*>[^<]|https?:|//\w|="/`),
		".js": regexp.MustCompile(
			`innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|https?:|srcdoc`),
		".css": regexp.MustCompile(`(?i)url\(|@import`),
	}
	files, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := static.ReadFile("static/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for end, bad := range refused {
			if strings.HasSuffix(file.Name(), end) {
				for _, hit := range bad.FindAllString(string(text), -1) {
					t.Errorf("%s has %s", file.Name(), hit)
				}
			}
		}
	}
}

func TestHandlerRefusesReadsOfAnotherSite(t *testing.T) {
	f := newFake()
	h := newHandler(f, nil)
	for _, path := range []string{"/events", "/lock?name=x", "/process?host=h&pid=1",
		"/deadlocks"} {
		w := serve(h, httptest.NewRequest("GET", path, nil), map[string]string{"Sec-Fetch-Site": "cross-site"})
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if f.countPolls() > 0 || f.searches > 0 {
		t.Error("the server was asked")
	}
}

// What is right is the same to break a hold and to evict a waiter.
func TestBreakNeedsAllToBeRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waited := newHeld("order:1", "A", 7)
		waited.Queue, waited.Waiters = []lockinfo.Waiter{{ID: "w", Place: 1}}, 1
		f := newFake(waited, newHeld("a\u202eb", "B", 8))
		allowed := true
		h := newHandler(f, &Options{Authorize: func(*http.Request) bool { return allowed }})
		secret, can := openStream(t, h).readHello(t)
		if !can || secret == "" {
			t.Fatalf("the page may break: %v, secret %q", can, secret)
		}
		good := map[string]string{
			"Content-Type": "application/json", secretHeader: secret, "Sec-Fetch-Site": "same-origin"}
		const body = `{"name":"order:1","token":7,"typed":"order:1"}`
		for name, c := range map[string]struct {
			header map[string]string // beside the good ones
			body   string
			refuse bool
			code   int
		}{
			"right": {nil, body, false, 200},
			"by origin": {
				map[string]string{"Sec-Fetch-Site": "", "Origin": "https://example.com"}, body, false, 200},
			"odd name, typed escaped":  {nil, `{"name":"a\u202eb","token":8,"typed":"a\\u202eb"}`, false, 200},
			"another site":             {map[string]string{"Sec-Fetch-Site": "cross-site"}, body, false, 403},
			"another host of the site": {map[string]string{"Sec-Fetch-Site": "same-site"}, body, false, 403},
			"another origin": {
				map[string]string{"Sec-Fetch-Site": "", "Origin": "https://evil.example"}, body, false, 403},
			"null origin":         {map[string]string{"Sec-Fetch-Site": "", "Origin": "null"}, body, false, 403},
			"no origin":           {map[string]string{"Sec-Fetch-Site": ""}, body, false, 403},
			"no secret":           {map[string]string{secretHeader: ""}, body, false, 403},
			"wrong secret":        {map[string]string{secretHeader: "x"}, body, false, 403},
			"a form":              {map[string]string{"Content-Type": "text/plain"}, body, false, 415},
			"not authorised":      {nil, body, true, 403},
			"wrong name typed":    {nil, `{"name":"order:1","token":7,"typed":"order:2"}`, false, 409},
			"no name typed":       {nil, `{"name":"order:1","token":7}`, false, 409},
			"odd name, typed raw": {nil, `{"name":"a\u202eb","token":8,"typed":"a\u202eb"}`, false, 409},
			"another token":       {nil, `{"name":"order:1","token":6,"typed":"order:1"}`, false, 404},
			"no JSON":             {nil, `x`, false, 400},
			"too long":            {nil, `{"name":"` + strings.Repeat("x", maxBody) + `"}`, false, 400},
		} {
			allowed, f.broken = !c.refuse, nil
			w := post(h, "/break", c.body, good, c.header)
			if w.Code != c.code || (len(f.broken) == 1) != (c.code == 200) {
				t.Errorf("%s: %d, broken %q, want %d", name, w.Code, f.broken, c.code)
			}
			f.evicted = nil
			w = post(h, "/evict", strings.NewReplacer(`"token":7`, `"waiter":"w"`, `"token":6`, `"waiter":"gone"`).
				Replace(c.body), good, c.header)
			want := c.code
			if strings.HasPrefix(name, "odd name, typed escaped") {
				want = 404 // nobody waits for it
			}
			if w.Code != want || (len(f.evicted) == 1) != (want == 200) {
				t.Errorf("evict, %s: %d, evicted %q, want %d", name, w.Code, f.evicted, want)
			}
		}
		for _, path := range []string{"/break", "/evict"} {
			if w := get(h, path); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("GET %s: %d", path, w.Code)
			}
		}

		h, f.broken = newHandler(f, nil), nil
		good[secretHeader], can = openStream(t, h).readHello(t)
		if w := post(h, "/break", body, good); can || w.Code != 403 || len(f.broken) > 0 {
			t.Errorf("without Authorize: may break: %v, %d, broken %q", can, w.Code, f.broken)
		}
	})
}

// Which code holds a name is told to a page that may only read, and to no other site.
func TestStacksAreAskedByThePageAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(newHeld("a b", "A", 1))
		h := newHandler(f, nil)
		secret, _ := openStream(t, h).readHello(t)
		good := map[string]string{
			"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json", secretHeader: secret}
		for name, header := range map[string]map[string]string{
			"another site": {"Sec-Fetch-Site": "cross-site"}, "no secret": {secretHeader: ""},
			"a form": {"Content-Type": "text/plain"},
		} {
			if w := post(h, "/stacks?name=a+b", "", good, header); w.Code < 400 || f.asked != nil {
				t.Errorf("%s: %d, asked %q", name, w.Code, f.asked)
			}
		}
		if w := get(h, "/stacks?name=a+b"); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("GET: %d", w.Code)
		}
		w := post(h, "/stacks?name=a+b", "", good)
		if got := w.Body.String(); w.Code != 200 || !strings.Contains(got, `"file":"f.go","line":7`) ||
			!strings.Contains(got, `\u003cb\u003e.f`) || strings.Contains(got, "error") {
			t.Errorf("%d: %s", w.Code, got)
		}
		f.change(func() { f.err = errors.New("no permission") })
		if w := post(h, "/stacks?name=a+b", "", good); !strings.Contains(w.Body.String(), `"error":"no permission"`) {
			t.Errorf("refused: %s", w.Body)
		}
	})
}

// One search runs for all who ask while it does.
func TestDeadlockSearchIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.search = make(chan struct{})
		f.found = []lockinfo.Deadlock{
			{Members: []lockinfo.Member{
				{Label: "A", Holds: "a", Waits: "b", Token: 1}, {Label: "B", Holds: "b", Waits: "a", Token: 2}}}}
		h := newHandler(f, nil)
		var asking sync.WaitGroup
		for range 5 {
			asking.Go(func() {
				w := get(h, "/deadlocks")
				var got struct {
					Deadlocks []lockinfo.Deadlock `json:"deadlocks"`
				}
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Deadlocks) != 1 ||
					len(got.Deadlocks[0].Members) != 2 {
					t.Errorf("%v: %s", err, w.Body)
				}
			})
		}
		synctest.Wait()
		close(f.search)
		asking.Wait()
		if f.searches != 1 {
			t.Errorf("%d searches", f.searches)
		}
	})
}

func TestProcessHasItsHoldsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waited := newHeld("b", "B", 2)
		waited.Queue = []lockinfo.Waiter{{Label: "A", Host: "host-A", PID: 7, Since: epoch}}
		h := newHandler(newFake(newHeld("a", "A", 1), waited), nil)
		if w := get(h, "/process?host=host-A&pid=7"); w.Code != 503 {
			t.Errorf("without a page: %d", w.Code)
		}
		v := openStream(t, h)
		v.next(t)
		var got processUses
		if err := json.Unmarshal(get(h, "/process?host=host-A&pid=7").Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Holds) != 1 || got.Holds[0].Name != "a" || len(got.Waits) != 1 || got.Waits[0].Name != "b" {
			t.Errorf("the process has %+v", got)
		}
		if w := get(h, "/process?host=host-A"); w.Code != 400 {
			t.Errorf("without a pid: %d", w.Code)
		}
		if w := get(h, "/lock?name=nobody"); w.Code != 404 {
			t.Errorf("a free name: %d", w.Code)
		}
		v.close()
		<-time.After(time.Second)
		if w := get(h, "/lock?name=a"); w.Code != 503 {
			t.Errorf("after the page was closed: %d", w.Code)
		}
	})
}

// pollOf returns a poll of names that are held by callers of their own. Each of the pairs says that
// the holder of the first name waits for the second.
func pollOf(pairs ...[2]string) map[string]*entry {
	infos := map[string]lockinfo.Info{}
	add := func(name string) lockinfo.Info {
		if info, known := infos[name]; known {
			return info
		}
		infos[name] = newHeld(name, name, int64(len(infos)+1))
		return infos[name]
	}
	for i, p := range pairs {
		add(p[0])
		waited := add(p[1])
		waited.Waiters++
		waited.WaitingSince = epoch.Add(-time.Duration(i) * time.Second)
		waited.Queue = append(waited.Queue,
			lockinfo.Waiter{Place: 1, Label: p[0], Host: "host-" + p[0], PID: 7, Under: []string{p[0]}})
		infos[p[1]] = waited
	}
	s := newSnapshot(nil, 1)
	for _, info := range infos {
		s.addName(info)
	}
	s.finish()
	return s.names
}

// Why a name is waited for has its whole chain, of which a page gets the first links and the root.
func TestReasonsAreBounded(t *testing.T) {
	const names = 5000
	var pairs [][2]string
	for i := range names - 1 {
		pairs = append(pairs, [2]string{fmt.Sprintf("n%04d", i), fmt.Sprintf("n%04d", i+1)})
	}
	chain := pollOf(pairs...)
	got := reasonsOf(chain, chain["n0001"].info)
	if len(got.Links) != maxLinks || got.Omitted != names-1-maxLinks || got.Cyclic {
		t.Errorf("%d links, %d omitted, cyclic %v", len(got.Links), got.Omitted, got.Cyclic)
	}
	if len(got.Roots) != 1 || got.Roots[0].Name != "n4999" {
		t.Errorf("the roots are %+v", got.Roots)
	}
}

// A row says what its holders wait for, and whether it is a root. What that takes is bounded.
func TestRowsTellWaits(t *testing.T) {
	chain := pollOf([2]string{"x", "y"}, [2]string{"y", "z"})
	if z := chain["z"]; len(z.waits) != 0 || !z.root || !strings.Contains(string(z.row), `"root":true`) {
		t.Errorf("the root is %s", z.row)
	}
	if y := chain["y"]; y.root || !slices.Equal(y.waits, []wait{{ID: chain["z"].id, Label: "y"}}) {
		t.Errorf("behind it is %s", y.row)
	}
	if x := chain["x"]; x.root || len(x.waits) != 0 {
		t.Errorf("nobody waits for %s", x.row)
	}

	const names = 1000 // of one process that waits for all of them
	s := newSnapshot(nil, 1)
	for i := range names {
		info := newHeld(fmt.Sprint(i), "A", int64(i+1))
		info.Waiters, info.Queue = 1, []lockinfo.Waiter{{Place: 1, Host: info.Holds[0].Host, PID: info.Holds[0].PID}}
		s.addName(info)
	}
	s.finish()
	told := 0
	for _, e := range s.names {
		told += len(e.waits)
	}
	if told == 0 || told > maxEach*(1+maxWaits/names) {
		t.Errorf("%d waits are told", told)
	}
}

// A page gets why a name is waited for, and possible deadlocks, of the last poll.
func TestWaitsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		for _, e := range pollOf([2]string{"x", "y"}, [2]string{"y", "x"}) {
			f.setNames(e.info)
		}
		h := newHandler(f, nil)
		openStream(t, h).next(t)
		var got struct {
			Why      reasons             `json:"why"`
			Possible []lockinfo.Deadlock `json:"possible"`
		}
		for _, path := range []string{"/lock?name=x", "/deadlocks"} {
			if err := json.Unmarshal(get(h, path).Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
		}
		if !got.Why.Cyclic || len(got.Why.Links) != 2 || len(got.Possible) != 1 {
			t.Errorf("got %+v", got)
		}
	})
}
