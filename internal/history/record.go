package history

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// maxText is how many bytes of a text are kept.
const maxText = 1 << 10

// A record is an entry on its way, and who wrote it.
type record struct {
	lockinfo.Entry
	key     string // of its stream
	process string
	number  int64
	first   int64     // the number of the grant, which this is as well; 0: it is one entry
	written time.Time // by the server's clock
}

// fields returns the fields of the entry in its stream, as they are sent at a moment.
func (r *record) fields(now time.Time) []any {
	var out []any
	for _, f := range []struct{ name, value string }{
		{"process", r.process}, {"number", number(r.number)}, {"first", number(r.first)},
		{"event", string(r.Kind)}, {"name", r.Name}, {"kind", string(r.LockKind)},
		{"label", r.Label}, {"owner", r.Owner}, {"token", number(r.Token)},
		{"waited", micros(r.Waited)}, {"held", micros(r.Held)}, {"ago", micros(now.Sub(r.At))},
		{"holder", r.Holder}, {"by", r.By}, {"reason", r.Reason},
	} {
		if f.value != "" {
			out = append(out, f.name, f.value[:min(len(f.value), maxText)])
		}
	}
	return out
}

// parseRecord reads an entry of a stream. It is false if the entry is none of ours.
func parseRecord(entry any) (r record, id string, ok bool) {
	parts, _ := entry.([]any)
	if len(parts) != 2 {
		return r, "", false
	}
	id, _ = parts[0].(string)
	list, _ := parts[1].([]any)
	fields := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		field, _ := list[i].(string)
		fields[field], _ = list[i+1].(string)
	}
	millis, _, _ := strings.Cut(id, "-")
	written := time.UnixMilli(parse(millis)).UTC()
	r = record{process: fields["process"], number: parse(fields["number"]), first: parse(fields["first"])}
	r.written, r.Entry = written, lockinfo.Entry{
		At:   written.Add(-duration(fields["ago"])),
		Kind: lockinfo.EntryKind(fields["event"]), Name: fields["name"], LockKind: lockinfo.Kind(fields["kind"]),
		Owner: fields["owner"], Label: fields["label"], Token: parse(fields["token"]),
		Waited: duration(fields["waited"]), Held: duration(fields["held"]),
		Holder: fields["holder"], By: fields["by"], Reason: fields["reason"],
	}
	host, rest, _ := strings.Cut(r.process, "/")
	pid, _, _ := strings.Cut(rest, "/")
	r.Host, r.PID = host, int(parse(pid))
	return r, id, r.Kind != "" && r.Name != ""
}

// join makes one record of a grant and its end; false if they are not of one lease.
func (r *record) join(grant *record) bool {
	ends := r.End() || r.Kind == lockinfo.EntryDetached
	if !ends || grant.Kind != lockinfo.EntryGranted || !r.At.Add(-r.Held).Equal(grant.At) {
		return false
	}
	r.first, r.Waited, r.Holder = grant.number, grant.Waited, grant.Holder
	return true
}

// split returns the entries that the record is: one, or the end of a lease and its grant.
func (r *record) split() []record {
	if r.first == 0 {
		return []record{*r}
	}
	end, grant := *r, *r
	end.Waited, end.Holder = 0, ""
	grant.Kind, grant.number, grant.At = lockinfo.EntryGranted, r.first, r.At.Add(-r.Held)
	grant.Held, grant.Reason, grant.By = 0, "", ""
	return []record{end, grant}
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func micros(d time.Duration) string { return number(max(d, 0).Microseconds()) }

// parse returns a number; 0 if the text is none.
func parse(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// duration returns a duration in microseconds, as far as there are so long ones.
func duration(text string) time.Duration {
	return time.Duration(min(parse(text), int64(1<<62/time.Microsecond))) * time.Microsecond
}
