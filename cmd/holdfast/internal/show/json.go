package show

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

// Version is the version of all JSON documents. Fields may be added to a version. A field that goes
// away, or means something else, makes a new one. docs/json.md has the contract. Package dashboard
// has types of its own for the same fields, as no module but its own can import them.
const Version = 1

// A Lock is a name as JSON.
type Lock struct {
	Version    int       `json:"version,omitempty"` // of a document; a part of one has none
	Name       string    `json:"name"`
	NameBase64 string    `json:"name_base64,omitempty"` // of a name that is no UTF-8
	Kind       string    `json:"kind,omitempty"`
	State      string    `json:"state"`
	At         time.Time `json:"at"`
	Holders    int       `json:"holders"`
	Waiters    int       `json:"waiters"`
	Holds      []Hold    `json:"holds"`
	Queue      []Waiter  `json:"queue"`
	Permits    *int64    `json:"permits,omitempty"` // of a semaphore, and of no other
	Taken      *int64    `json:"taken,omitempty"`   // of a semaphore, and of no other
	Count      *int64    `json:"count,omitempty"`   // of a latch, and of no other
	Foreign    string    `json:"foreign,omitempty"`
	Masters    []Master  `json:"masters,omitempty"`
}

// A Hold is a hold as JSON.
type Hold struct {
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

// A Waiter is a place in a queue as JSON.
type Waiter struct {
	Version int       `json:"version,omitempty"`
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

// A Master is what a master of a quorum says, as JSON.
type Master struct {
	Node    string `json:"node"`
	Counts  bool   `json:"counts"`
	Why     string `json:"why,omitempty"`
	Holds   []Hold `json:"holds"`
	Foreign string `json:"foreign,omitempty"`
	Error   string `json:"error,omitempty"`
}

// LockOf is a name as JSON, without a version.
func LockOf(info holdfast.LockInfo) Lock {
	out := Lock{
		Name: info.Name, NameBase64: exactly(info.Name), Kind: info.Kind, State: string(info.State), At: info.At.UTC(), Holders: info.Holders,
		Waiters: info.Waiters, Holds: holdsOf(info.Holds), Queue: []Waiter{}, Foreign: info.Foreign,
	}
	switch {
	case info.Kind == "semaphore":
		out.Permits, out.Taken = &info.Permits, &info.Taken
	case info.State == holdfast.StateSet || info.State == holdfast.StateOpen:
		out.Count = &info.Count
	}
	for _, w := range info.Queue {
		out.Queue = append(out.Queue, WaiterOf(w))
	}
	for _, m := range info.Masters {
		master := Master{Node: m.Node, Counts: m.Counts, Why: m.Why, Holds: holdsOf(m.Holds), Foreign: m.Foreign}
		if m.Err != nil {
			master.Error = m.Err.Error()
		}
		out.Masters = append(out.Masters, master)
	}
	return out
}

func holdsOf(holds []holdfast.HoldInfo) []Hold {
	out := make([]Hold, 0, len(holds))
	for _, h := range holds {
		out = append(out, Hold{
			State: string(h.State), By: h.By, Owner: h.Owner, Label: h.Label, Host: h.Host, PID: h.PID, Mode: string(h.Mode), Permits: h.Permits,
			Token: h.Token, LastToken: h.LastToken, Since: utc(h.Since), Remaining: h.Remaining.Seconds(), TTL: h.TTL.Seconds(), Fixed: h.Fixed,
			Renewed: utc(h.Renewed), Late: h.Late,
		})
	}
	return out
}

// WaiterOf is a place in a queue as JSON, without a version.
func WaiterOf(w holdfast.WaiterInfo) Waiter {
	return Waiter{
		ID: w.ID, Place: w.Place, Owner: w.Owner, Label: w.Label, Host: w.Host, PID: w.PID, Mode: string(w.Mode), Permits: w.Permits,
		Since: utc(w.Since), Alive: string(w.Alive), Kept: w.Kept, Under: w.Under,
	}
}

// Info is the reverse of LockOf, for a document that was stored. It refuses what no command writes.
func (l Lock) Info() (holdfast.LockInfo, error) {
	out := holdfast.LockInfo{
		Name: l.Name, Kind: l.Kind, State: holdfast.LockState(l.State), At: l.At, Holders: l.Holders, Waiters: l.Waiters, Holds: infosOf(l.Holds),
		Permits: number(l.Permits), Taken: number(l.Taken), Count: number(l.Count), Foreign: l.Foreign,
	}
	if l.NameBase64 != "" {
		name, err := base64.StdEncoding.DecodeString(l.NameBase64)
		if err != nil {
			return out, fmt.Errorf("name_base64: %w", err)
		}
		out.Name = string(name)
	}
	if out.Name == "" || l.State == "" {
		return out, errors.New("a lock without name or state")
	}
	for _, w := range l.Queue {
		out.Queue = append(out.Queue, holdfast.WaiterInfo{
			ID: w.ID, Place: w.Place, Owner: w.Owner, Label: w.Label, Host: w.Host, PID: w.PID, Mode: holdfast.HoldMode(w.Mode), Permits: w.Permits,
			Since: w.Since, Alive: holdfast.Liveness(w.Alive), Kept: w.Kept, Under: w.Under,
		})
	}
	for _, m := range l.Masters {
		master := holdfast.MasterInfo{Node: m.Node, Counts: m.Counts, Why: m.Why, Holds: infosOf(m.Holds), Foreign: m.Foreign}
		if m.Error != "" {
			master.Err = errors.New(m.Error)
		}
		out.Masters = append(out.Masters, master)
	}
	return out, nil
}

// number is 0 if there is none.
func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func infosOf(holds []Hold) []holdfast.HoldInfo {
	var out []holdfast.HoldInfo
	for _, h := range holds {
		out = append(out, holdfast.HoldInfo{
			State: holdfast.HoldState(h.State), By: h.By, Owner: h.Owner, Label: h.Label, Host: h.Host, PID: h.PID, Mode: holdfast.HoldMode(h.Mode),
			Permits: h.Permits, Token: h.Token, LastToken: h.LastToken, Since: h.Since, Remaining: seconds(h.Remaining), TTL: seconds(h.TTL),
			Fixed: h.Fixed, Renewed: h.Renewed, Late: h.Late,
		})
	}
	return out
}

// JSON encodes a document. A terminal obeys nothing in it: what it would obey is escaped. An empty
// indent makes one line of it, without its end.
func JSON(document any, indent string) (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(document); err != nil {
		return "", err
	}
	return escaped(strings.TrimSuffix(text.String(), "\n")), nil
}

// escaped escapes what is not printable, which in JSON stands in strings alone.
func escaped(text string) string {
	safe := func(r rune) bool { return r == '\n' || strconv.IsPrint(r) && r != utf8.RuneError }
	if !strings.ContainsFunc(text, func(r rune) bool { return !safe(r) }) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case safe(r):
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
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

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}
