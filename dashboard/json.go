package dashboard

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// version is that of the documents in docs/json.md, whose fields these have. The command has types
// of its own for them: its module may import nothing internal of this one, and an exported type
// here would be a second promise. A test compares the fields with that page.
const version = 1

type lock struct {
	Name       string    `json:"name"`
	NameBase64 string    `json:"name_base64,omitempty"` // of a name that is no UTF-8
	Kind       string    `json:"kind,omitempty"`
	State      string    `json:"state"`
	At         time.Time `json:"at"`
	Holders    int       `json:"holders"`
	Waiters    int       `json:"waiters"`
	Holds      []hold    `json:"holds"`
	Queue      []waiter  `json:"queue"`
	Permits    int64     `json:"permits,omitempty"`
	Taken      int64     `json:"taken,omitempty"`
	Count      int64     `json:"count,omitempty"`
	Foreign    string    `json:"foreign,omitempty"`
	Masters    []master  `json:"masters,omitempty"`
}

type hold struct {
	State     string    `json:"state"`
	By        string    `json:"by,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	Label     string    `json:"label"`
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	Mode      string    `json:"mode"`
	Permits   int64     `json:"permits,omitempty"`
	Token     int64     `json:"token"`
	LastToken int64     `json:"last_token"`
	Since     time.Time `json:"since,omitzero"`
	Remaining float64   `json:"remaining_seconds"`
	TTL       float64   `json:"ttl_seconds"`
	Fixed     bool      `json:"fixed"`
	Renewed   time.Time `json:"renewed,omitzero"`
	Late      bool      `json:"late"`
}

type waiter struct {
	ID      string    `json:"id"`
	Place   int       `json:"place"`
	Owner   string    `json:"owner,omitempty"`
	Label   string    `json:"label"`
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Mode    string    `json:"mode"`
	Permits int64     `json:"permits,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Alive   string    `json:"alive"`
	Kept    bool      `json:"kept"`
	Under   []string  `json:"under,omitempty"`
}

type master struct {
	Node   string `json:"node"`
	Counts bool   `json:"counts"`
	Why    string `json:"why,omitempty"`
	Holds  []hold `json:"holds"`
	Error  string `json:"error,omitempty"`
}

// A row is what the list shows of a name. Of its holds it has the oldest, and of its queue nothing.
type row struct {
	ID uint64 `json:"id"` // while the name is there
	lock
	Hosts []string `json:"hosts,omitempty"` // of the holds, the first mostHosts
	Late  bool     `json:"late"`            // one of its holds is late
}

const mostHosts = 10

func lockOf(info lockinfo.Info) lock {
	out := lock{
		Name: info.Name, NameBase64: exactly(info.Name), Kind: string(info.Kind), State: string(info.State()), At: info.At.UTC(), Holders: info.Holders,
		Waiters: info.Waiters, Holds: holdsOf(info.Holds), Queue: []waiter{}, Permits: info.Permits, Taken: info.Taken, Count: info.Count,
		Foreign: info.Foreign,
	}
	for _, w := range info.Queue {
		out.Queue = append(out.Queue, waiterOf(w))
	}
	for _, m := range info.Masters {
		told := master{Node: m.Node, Counts: m.Counts, Why: m.Why, Holds: holdsOf(m.Holds)}
		if m.Err != nil {
			told.Error = noAnswer(m.Node, m.Err)
		}
		out.Masters = append(out.Masters, told)
	}
	return out
}

// noAnswer is why a master did not answer. It leaves out what stands beside it: its name, and the
// name that it was asked for.
func noAnswer(node string, err error) string {
	return strings.TrimPrefix(lockinfo.Master{Node: node, Err: err, Why: err.Error()}.String(), node+": ")
}

func holdsOf(holds []lockinfo.Hold) []hold {
	out := make([]hold, 0, len(holds))
	for _, h := range holds {
		out = append(out, hold{
			State: string(h.State), By: h.By, Owner: h.Owner, Label: h.Label, Host: h.Host, PID: h.PID, Mode: string(h.Mode), Permits: h.Permits,
			Token: h.Token, LastToken: h.LastToken, Since: utc(h.Since), Remaining: h.Remaining.Seconds(), TTL: h.TTL.Seconds(), Fixed: h.Fixed,
			Renewed: utc(h.Renewed), Late: h.Late,
		})
	}
	return out
}

func waiterOf(w lockinfo.Waiter) waiter {
	return waiter{
		ID: w.ID, Place: w.Place, Owner: w.Owner, Label: w.Label, Host: w.Host, PID: w.PID, Mode: string(w.Mode), Permits: w.Permits,
		Since: utc(w.Since), Alive: string(w.Alive), Kept: w.Kept, Under: w.Under,
	}
}

func rowOf(id uint64, info lockinfo.Info) row {
	out := row{ID: id, Late: late(info)}
	for _, h := range info.Holds {
		if h.Host != "" && len(out.Hosts) < mostHosts && !slices.Contains(out.Hosts, h.Host) {
			out.Hosts = append(out.Hosts, h.Host)
		}
	}
	info.Queue, info.Masters = nil, nil
	if h, ok := oldest(info); ok {
		info.Holds = []lockinfo.Hold{h}
	}
	out.lock = lockOf(info)
	return out
}

func late(info lockinfo.Info) bool {
	return slices.ContainsFunc(info.Holds, func(h lockinfo.Hold) bool { return h.Late })
}

// oldest is the hold that has held for longest. Remainders come last.
func oldest(info lockinfo.Info) (lockinfo.Hold, bool) {
	if len(info.Holds) == 0 {
		return lockinfo.Hold{}, false
	}
	return slices.MinFunc(info.Holds, func(a, b lockinfo.Hold) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Since.Compare(b.Since))
	}), true
}

// rank is 0 of a hold, and 1 of a remainder.
func rank(h lockinfo.Hold) int {
	if h.State == lockinfo.StateHeld || h.State == lockinfo.StateHandedOver {
		return 0
	}
	return 1
}

// exactly are the bytes of a text that JSON cannot have.
func exactly(text string) string {
	if utf8.ValidString(text) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(text))
}

// utc is a time as JSON has it; the zero time stays.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
