package lockinfo

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := encode(value)
	fatal.If(t, err)
	return string(text)
}

// The contract of docs/json.md: which fields are there, and in which form.
func TestJSON(t *testing.T) {
	info := mutex(hold(StateHeld, 17, 3))
	info.Waiters = 1
	info.Queue = []Waiter{{ID: "abc", Place: 1, Label: "w", Host: "b", PID: 3, Mode: ModeExclusive,
		Since: at.In(time.FixedZone("", 3600)), Alive: AliveYes, Under: []string{"<other>"}}}
	want := `{"version":2,"name":"order:42","kind":"mutex","state":"held","at":"2026-11-24T02:14:05.000123Z","holders":1,"waiters":1,` +
		`"holds":[{"state":"held","label":"l17","host":"a","pid":12,"mode":"exclusive","token":17,"last_token":80,` +
		`"since":"2026-11-24T02:11:05.000123Z","fixed":false,"renewed":"2026-11-24T02:14:03.000123Z","late":false,"remaining_seconds":13,"ttl_seconds":15}],` +
		`"queue":[{"id":"abc","place":1,"label":"w","host":"b","pid":3,"mode":"exclusive","since":"2026-11-24T02:14:05.000123Z","alive":"yes","kept":false,"under":["<other>"]}]}`
	if got := encoded(t, Document{info}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := encoded(t, Document{struct{}{}}), `{"version":2}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := json.Marshal(Document{[]int{1}}); err == nil {
		t.Error("a list is a document")
	}
}

// The numbers of a semaphore and of a latch are there also if they are 0, and those of other kinds
// are not. Lists are there although they are empty.
func TestJSONFieldsThatAreAlwaysThere(t *testing.T) {
	for want, value := range map[string]any{
		`{"name":"a","kind":"semaphore","state":"free","at":"0001-01-01T00:00:00Z","holders":0,"waiters":0,"holds":[],"queue":[],"permits":5,"taken":0}`: Info{Name: "a", Kind: KindSemaphore, Permits: 5},
		`{"name":"a","kind":"latch","state":"open","at":"0001-01-01T00:00:00Z","holders":0,"waiters":0,"holds":[],"queue":[],"count":0}`:                 Info{Name: "a", Kind: KindLatch},
		`{"name":"a","state":"free","at":"0001-01-01T00:00:00Z","holders":0,"waiters":0,"holds":[],"queue":[]}`:                                          Info{Name: "a"},
		`{"node":"node 1","counts":true,"holds":[]}`: Master{Node: "node 1", Counts: true},
	} {
		if got := encoded(t, value); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// values are of every type, with every field in one of them.
func values() []any {
	full := mutex(hold(StateBroken, 17, 3))
	full.Kind, full.Class, full.Foreign = KindLatch, "orders", "damaged"
	full.WaitingSince = at
	h := &full.Holds[0]
	h.By, h.Owner, h.Permits, h.Fixed, h.Late, h.Ticket, h.Retains = "ops", "team a", 3, true, true, true,
		true
	h.Remaining, h.TTL = 12345678*time.Microsecond, 24*time.Hour
	full.Queue = []Waiter{{ID: "abc", Place: 1, Owner: "o", Label: "w", Host: "b", PID: 3, Mode: ModePermits,
		Permits: 2, Since: at, Alive: AliveUnknown, Kept: true, Under: []string{"a", "\xff"}}}
	full.Masters = []Master{{Node: "node 1", Counts: true, Age: 5 * time.Hour, Answer: "it has it", Holds: full.Holds},
		{Node: "node 2", Why: "unreachable", Err: errors.New("holdfast: away"), Foreign: "a list"},
		{Node: "node 3", Why: "it is the same server as node 1", SameAs: "node 1"}}
	bytesName := full
	bytesName.Name, bytesName.Kind = "\xffname\u202e", KindSemaphore
	wait := Wait{Name: "y\xff", Waiter: full.Queue[0], Perhaps: true, Holds: LocationAbove}
	link := Link{Depth: 1, Name: "\xff", At: at, Hold: *h, Waits: []Wait{wait}}
	out := []any{full, bytesName,
		Deadlock{[]Member{{Label: "l", Host: "h", PID: 1, Holds: "x\xff", Token: 3, Waits: "y\xff"},
			{Holds: "y", Waits: "z", Perhaps: true}}},
		wait, link, Stack{Hold: *h, Leases: 2, Age: 5 * time.Second, Frames: []Frame{{"f", "g.go", 1}}},
		Stack{Why: "away"}, Chain{Lock: bytesName, Links: []Link{link}},
		Entry{At: at, Kind: EntryGranted, Name: "\xff", LockKind: KindMutex, Owner: "o", Label: "<l>",
			Host: "h", PID: 2, Token: 3, Waited: time.Second, Held: 1500 * time.Microsecond, Holder: "x",
			By: "y", Reason: "expired"},
		Change{Event: EventFreed, Before: bytesName, After: Info{Name: bytesName.Name, At: at}},
		Change{Event: EventHeld, After: full}, Change{Event: EventWaiting, Before: full, After: bytesName}}
	for _, all := range infos() {
		for _, info := range all {
			out = append(out, info)
		}
	}
	return out
}

// sameErrors makes errors that have the same text the same one.
func sameErrors(value any) {
	same := func(info *Info) {
		for i := range info.Masters {
			if m := &info.Masters[i]; m.Err != nil {
				m.Err = textError(m.Err.Error())
			}
		}
	}
	switch v := value.(type) {
	case *Info:
		same(v)
	case *Chain:
		same(&v.Lock)
	case *Change:
		same(&v.Before)
		same(&v.After)
	}
}

type textError string

func (e textError) Error() string { return string(e) }

// What was written is read as the same value, and is written as the same text again.
func TestJSONComesBack(t *testing.T) {
	for _, value := range values() {
		text := encoded(t, Document{value})
		back := reflect.New(reflect.TypeOf(value))
		if err := json.Unmarshal([]byte(text), &Document{back.Interface()}); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if again := encoded(t, Document{back.Elem().Interface()}); again != text {
			t.Errorf("got  %s\nwant %s", again, text)
		}
		want := reflect.New(reflect.TypeOf(value))
		want.Elem().Set(reflect.ValueOf(value))
		sameErrors(want.Interface())
		sameErrors(back.Interface())
		if !reflect.DeepEqual(back.Interface(), want.Interface()) {
			t.Errorf("%s\ngot  %+v\nwant %+v", text, back.Elem(), want.Elem())
		}
	}
}

func TestJSONIsRefused(t *testing.T) {
	const rest = `"at":"2026-11-24T02:14:05Z","holders":0,"waiters":0,"holds":[],"queue":[]}`
	for name, c := range map[string]struct {
		text string
		into any
		want string
	}{
		"no name":  {`{"state":"free",` + rest, &Info{}, "no name"},
		"no state": {`{"name":"x",` + rest, &Info{}, `the state of "x" is ""`},
		"another state": {`{"name":"x","state":"held",` + rest, &Info{},
			`is "held", and its other fields say "free"`},
		"no base64":         {`{"name":"x","name_base64":"%","state":"free",` + rest, &Info{}, "base64"},
		"text for a number": {`{"name":"x","state":"free","holders":"1"}`, &Info{}, "holders"},
		"a shorter list":    {`{"under":["a","b"],"under_base64":["YQ=="]}`, &Waiter{}, "not the same length"},
		"another version": {`{"version":1,"name":"x","state":"free",` + rest, &Document{&Info{}},
			"version 1, and this program reads 2"},
		"no version": {`{"name":"x","state":"free",` + rest, &Document{&Info{}},
			"version 0, and this program reads 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := json.Unmarshal([]byte(c.text), c.into); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// fieldsOf adds the names of the fields of a JSON value to those of its part: "lock", "hold" ...
func fieldsOf(part string, value any, found map[string]map[string]bool) {
	parts := map[string]string{
		"holds": "hold", "queue": "waiter", "masters": "master", "members": "member", "lock": "lock", "before": "lock",
		"links": "link", "hold": "hold", "frames": "frame", "waits": "wait", "waiter": "waiter"}
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			fieldsOf(part, each, found)
		}
	case map[string]any:
		if found[part] == nil {
			found[part] = map[string]bool{}
		}
		for name, field := range v {
			found[part][name] = true
			fieldsOf(parts[name], field, found)
		}
	}
}

// docs/json.md tells of each field, and of no other. What it calls "always" has no omitempty.
func TestFieldsAreThoseOfTheContract(t *testing.T) {
	page, err := os.ReadFile("../docs/json.md")
	fatal.If(t, err)
	page = bytes.ReplaceAll(page, []byte("\r\n"), []byte("\n"))
	found := map[string]map[string]bool{}
	for _, value := range values() {
		part := map[string]string{
			"Entry": "entry", "Info": "lock", "Change": "change", "Deadlock": "deadlock", "Chain": "chain",
			"Link": "link", "Wait": "wait", "Stack": "stack"}[reflect.TypeOf(value).Name()]
		var fields any
		fatal.If(t, json.Unmarshal([]byte(encoded(t, value)), &fields))
		fieldsOf(part, fields, found)
	}
	row, name := regexp.MustCompile("(?m)^\\| (`.*?) \\|"), regexp.MustCompile("`([a-z0-9_]+)`")
	for part, heading := range map[string]string{
		"lock": "## A lock\n", "hold": "\nA hold, in `holds`:\n", "waiter": "\nA waiter, in `queue`:\n",
		"master": "\nA master, in `masters`:\n",
		"change": "## A change\n", "entry": "## An entry of the history\n", "member": "## A deadlock\n", "chain": "## A chain\n",
		"link": "\nA link, in `links`:\n", "wait": "\nA wait, in `waits`:\n",
		"stack": "## A stack\n", "frame": "\nA frame, in `frames`:\n",
	} {
		_, section, ok := strings.Cut(string(page), heading)
		table := ""
		if i := strings.Index(section, "\n| field |"); ok && i >= 0 {
			table, _, _ = strings.Cut(section[i+1:], "\n\n")
		}
		told := map[string]bool{}
		for _, cells := range row.FindAllStringSubmatch(table, -1) {
			for _, field := range name.FindAllStringSubmatch(cells[1], -1) {
				told[field[1]] = true
			}
		}
		if got, want := slices.Sorted(maps.Keys(told)),
			slices.Sorted(maps.Keys(found[part])); !slices.Equal(got, want) {
			t.Errorf("docs/json.md, a %s:\nthe page has %v\nthe code has %v", part, got, want)
		}
	}
}
