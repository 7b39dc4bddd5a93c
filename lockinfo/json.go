package lockinfo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Version is the version of the form in JSON. A version may get more fields. A field that goes
// away, or means something else, makes a new version.
const Version = 2

// A Document is a value with the Version of its form. In JSON the version is the first field of the
// value, which is an object. To read one, Value is a pointer.
type Document struct{ Value any }

// MarshalJSON implements json.Marshaler.
func (d Document) MarshalJSON() ([]byte, error) {
	text, err := encode(d.Value)
	if err != nil {
		return nil, err
	}
	fields, ok := bytes.CutPrefix(text, []byte("{"))
	if !ok {
		return nil, errors.New("lockinfo: a document is a JSON object")
	}
	between := ","
	if string(fields) == "}" {
		between = ""
	}
	return append(fmt.Appendf(nil, `{"version":%d%s`, Version, between), fields...), nil
}

// UnmarshalJSON implements json.Unmarshaler. It refuses another version.
func (d *Document) UnmarshalJSON(text []byte) error {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	if head.Version != Version {
		return fmt.Errorf("lockinfo: the document has the version %d, and this program reads %d", head.Version, Version)
	}
	return json.Unmarshal(text, d.Value)
}

// Each type in the form of JSON has the fields that differ in it, and all others in an embedded
// type. A part of a value is put into its form with the whole, as nested Marshalers cost twice.
type (
	infoFields   Info
	holdFields   Hold
	waiterFields Waiter
	masterFields Master
	memberFields Member

	infoJSON struct {
		Name       string `json:"name"`
		NameBase64 []byte `json:"name_base64,omitempty"`
		Kind       Kind   `json:"kind,omitempty"`
		State      State  `json:"state"`
		infoFields
		Holds   []holdJSON   `json:"holds"`
		Queue   []waiterJSON `json:"queue"`
		Permits *int64       `json:"permits,omitempty"` // of a semaphore, and of no other
		Taken   *int64       `json:"taken,omitempty"`   // of a semaphore, and of no other
		Count   *int64       `json:"count,omitempty"`   // of a latch, and of no other
		Masters []masterJSON `json:"masters,omitempty"`
	}

	holdJSON struct {
		holdFields
		Remaining float64 `json:"remaining_seconds"`
		TTL       float64 `json:"ttl_seconds"`
	}

	waiterJSON struct {
		waiterFields
		UnderBase64 [][]byte `json:"under_base64,omitempty"` // all of them, if one is no UTF-8
	}

	masterJSON struct {
		masterFields
		Error string     `json:"error,omitempty"`
		Age   float64    `json:"age_seconds,omitempty"`
		Holds []holdJSON `json:"holds"`
	}
)

// MarshalJSON implements json.Marshaler.
func (i Info) MarshalJSON() ([]byte, error) {
	out := infoJSON{Name: i.Name, NameBase64: nonTextBytes(i.Name), Kind: i.Kind, State: i.State(),
		infoFields: infoFields(i),
		Holds:      translateAll(i.Holds, Hold.toJSON), Queue: translateAll(i.Queue, Waiter.toJSON),
		Masters: translateAll(i.Masters, Master.toJSON)}
	out.At, out.WaitingSince = i.At.UTC(), i.WaitingSince.UTC()
	switch i.Kind {
	case KindSemaphore:
		out.Permits, out.Taken = &i.Permits, &i.Taken
	case KindLatch:
		out.Count = &i.Count
	}
	return encode(out)
}

// UnmarshalJSON implements json.Unmarshaler. It refuses an Info without a name, and one whose state
// is not what its other fields say. Then the Info stays as it was.
func (i *Info) UnmarshalJSON(text []byte) error { return decode(text, i, infoJSON.toInfo) }

func (in infoJSON) toInfo() (out Info, err error) {
	out = Info(in.infoFields)
	out.Name, out.Kind = decodeName(in.Name, in.NameBase64), in.Kind
	out.Holds, out.Masters = translateAllOrNil(in.Holds, holdJSON.toHold),
		translateAllOrNil(in.Masters, masterJSON.toMaster)
	if out.Queue, err = checkAll(in.Queue, waiterJSON.toWaiter); err != nil {
		return out, err
	}
	for _, number := range []struct{ from, to *int64 }{
		{in.Permits, &out.Permits}, {in.Taken, &out.Taken}, {in.Count, &out.Count}} {
		if number.from != nil {
			*number.to = *number.from
		}
	}
	if out.Name == "" {
		return out, errors.New("lockinfo: an info has no name")
	}
	if is := out.State(); is != in.State {
		return out, fmt.Errorf("lockinfo: the state of %q is %q, and its other fields say %q", out.Name, in.State, is)
	}
	return out, nil
}

func (h Hold) toJSON() holdJSON {
	h.Since, h.Renewed = h.Since.UTC(), h.Renewed.UTC()
	return holdJSON{holdFields(h), toSeconds(h.Remaining), toSeconds(h.TTL)}
}

func (h holdJSON) toHold() Hold {
	out := Hold(h.holdFields)
	out.Remaining, out.TTL = fromSeconds(h.Remaining), fromSeconds(h.TTL)
	return out
}

// MarshalJSON implements json.Marshaler.
func (h Hold) MarshalJSON() ([]byte, error) { return encode(h.toJSON()) }

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hold) UnmarshalJSON(text []byte) error { return decode(text, h, accept(holdJSON.toHold)) }

func (w Waiter) toJSON() waiterJSON {
	w.Since = w.Since.UTC()
	out := waiterJSON{waiterFields: waiterFields(w)}
	if slices.ContainsFunc(w.Under, func(name string) bool { return !utf8.ValidString(name) }) {
		out.UnderBase64 = translateAll(w.Under, func(name string) []byte { return []byte(name) })
	}
	return out
}

func (w waiterJSON) toWaiter() (Waiter, error) {
	out := Waiter(w.waiterFields)
	if w.UnderBase64 != nil && len(w.UnderBase64) != len(out.Under) {
		return out, errors.New("lockinfo: under and under_base64 have not the same length")
	}
	for i, name := range w.UnderBase64 {
		out.Under[i] = string(name)
	}
	return out, nil
}

// MarshalJSON implements json.Marshaler.
func (w Waiter) MarshalJSON() ([]byte, error) { return encode(w.toJSON()) }

// UnmarshalJSON implements json.Unmarshaler.
func (w *Waiter) UnmarshalJSON(text []byte) error { return decode(text, w, waiterJSON.toWaiter) }

func (m Master) toJSON() masterJSON {
	out := masterJSON{masterFields: masterFields(m), Age: toSeconds(m.Age), Holds: translateAll(m.Holds, Hold.toJSON)}
	if m.Err != nil {
		out.Error = m.Err.Error()
	}
	return out
}

func (m masterJSON) toMaster() Master {
	out := Master(m.masterFields)
	out.Holds, out.Age = translateAllOrNil(m.Holds, holdJSON.toHold), fromSeconds(m.Age)
	if m.Error != "" {
		out.Err = errors.New(m.Error)
	}
	return out
}

// MarshalJSON implements json.Marshaler.
func (m Master) MarshalJSON() ([]byte, error) { return encode(m.toJSON()) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Master) UnmarshalJSON(text []byte) error {
	return decode(text, m, accept(masterJSON.toMaster))
}

type memberJSON struct {
	memberFields
	HoldsBase64 []byte `json:"holds_base64,omitempty"`
	WaitsBase64 []byte `json:"waits_base64,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (m Member) MarshalJSON() ([]byte, error) {
	return encode(memberJSON{memberFields(m), nonTextBytes(m.Holds), nonTextBytes(m.Waits)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Member) UnmarshalJSON(text []byte) error {
	return decode(text, m, accept(memberJSON.toMember))
}

func (m memberJSON) toMember() Member {
	out := Member(m.memberFields)
	out.Holds, out.Waits = decodeName(out.Holds, m.HoldsBase64), decodeName(out.Waits, m.WaitsBase64)
	return out
}

type (
	linkFields Link
	waitFields Wait

	chainJSON struct {
		Lock  Info       `json:"lock"`
		Links []linkJSON `json:"links"`
	}

	linkJSON struct {
		linkFields
		NameBase64 []byte     `json:"name_base64,omitempty"`
		Hold       holdJSON   `json:"hold"`
		Waits      []waitJSON `json:"waits"`
	}

	waitJSON struct {
		waitFields
		NameBase64 []byte     `json:"name_base64,omitempty"`
		Waiter     waiterJSON `json:"waiter"`
	}
)

// MarshalJSON implements json.Marshaler.
func (c Chain) MarshalJSON() ([]byte, error) {
	return encode(chainJSON{c.Lock, translateAll(c.Links, Link.toJSON)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Chain) UnmarshalJSON(text []byte) error {
	return decode(text, c, func(in chainJSON) (Chain, error) {
		links, err := checkAll(in.Links, linkJSON.toLink)
		return Chain{Lock: in.Lock, Links: links}, err
	})
}

func (l Link) toJSON() linkJSON {
	l.At = l.At.UTC()
	return linkJSON{linkFields(l), nonTextBytes(l.Name), l.Hold.toJSON(), translateAll(l.Waits, Wait.toJSON)}
}

func (l linkJSON) toLink() (out Link, err error) {
	out = Link(l.linkFields)
	out.Name, out.Hold = decodeName(l.Name, l.NameBase64), l.Hold.toHold()
	out.Waits, err = checkAll(l.Waits, waitJSON.toWait)
	return out, err
}

func (w waitJSON) toWait() (out Wait, err error) {
	out = Wait(w.waitFields)
	out.Name = decodeName(w.Name, w.NameBase64)
	out.Waiter, err = w.Waiter.toWaiter()
	return out, err
}

// MarshalJSON implements json.Marshaler.
func (l Link) MarshalJSON() ([]byte, error) { return encode(l.toJSON()) }

// UnmarshalJSON implements json.Unmarshaler.
func (l *Link) UnmarshalJSON(text []byte) error { return decode(text, l, linkJSON.toLink) }

func (w Wait) toJSON() waitJSON {
	return waitJSON{waitFields(w), nonTextBytes(w.Name), w.Waiter.toJSON()}
}

// MarshalJSON implements json.Marshaler.
func (w Wait) MarshalJSON() ([]byte, error) { return encode(w.toJSON()) }

// UnmarshalJSON implements json.Unmarshaler.
func (w *Wait) UnmarshalJSON(text []byte) error { return decode(text, w, waitJSON.toWait) }

type changeJSON struct {
	At         time.Time `json:"at"`
	Event      Event     `json:"event"`
	Name       string    `json:"name"`
	NameBase64 []byte    `json:"name_base64,omitempty"`
	Lock       *Info     `json:"lock,omitempty"`   // none of a name that is free
	Before     *Info     `json:"before,omitempty"` // none of a name that was not there
}

// MarshalJSON implements json.Marshaler.
func (c Change) MarshalJSON() ([]byte, error) {
	out := changeJSON{At: c.After.At.UTC(), Event: c.Event, Name: c.After.Name, NameBase64: nonTextBytes(c.After.Name)}
	if c.Event != EventFreed {
		out.Lock = &c.After
	}
	if c.Before.Name != "" {
		out.Before = &c.Before
	}
	return encode(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Change) UnmarshalJSON(text []byte) error {
	return decode(text, c, accept(changeJSON.toChange))
}

func (in changeJSON) toChange() Change {
	out := Change{Event: in.Event, After: Info{Name: decodeName(in.Name, in.NameBase64), At: in.At}}
	if in.Lock != nil {
		out.After = *in.Lock
	}
	if in.Before != nil {
		out.Before = *in.Before
	}
	return out
}

// encode returns the JSON of a value in one line. Characters that HTML obeys stay as they are: an
// encoder around this one escapes them if it is to.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// decode reads a value from its form. On failure the value stays as it was.
func decode[J, T any](text []byte, to *T, translate func(J) (T, error)) error {
	var in J
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	out, err := translate(in)
	if err == nil {
		*to = out
	}
	return err
}

// accept is a translation that never fails.
func accept[J, T any](translate func(J) T) func(J) (T, error) {
	return func(in J) (T, error) { return translate(in), nil }
}

// nonTextBytes returns the bytes of a name that JSON cannot have as a text, and nil for any other.
func nonTextBytes(name string) []byte {
	if utf8.ValidString(name) {
		return nil
	}
	return []byte(name)
}

// decodeName is the reverse of nonTextBytes.
func decodeName(text string, exactly []byte) string {
	if exactly != nil {
		return string(exactly)
	}
	return text
}

// translateAll translates each of a list, which is not nil then: JSON shows it although it is
// empty.
func translateAll[A, B any](all []A, translate func(A) B) []B {
	out := make([]B, len(all))
	for i := range all {
		out[i] = translate(all[i])
	}
	return out
}

// translateAllOrNil translates each of a list. If there is none, the list is nil.
func translateAllOrNil[A, B any](all []A, translate func(A) B) []B {
	if len(all) == 0 {
		return nil
	}
	return translateAll(all, translate)
}

// checkAll translates each of a list, or returns the first error. If the list is empty, it is nil.
func checkAll[A, B any](all []A, translate func(A) (B, error)) (out []B, err error) {
	for i := range all {
		one, err := translate(all[i])
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func toSeconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }

func fromSeconds(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond
}
