package history

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

const second = int64(time.Second)

// A story is a history written by hand: its acts, each of which is a call and its return, or what
// happened to a hold or a process. A hold is named by its process and a number.
type story [][]Record

// assemble numbers the operations, and joins all.
func (s story) assemble(t *testing.T) *History {
	t.Helper()
	var records []Record
	for i, act := range s {
		for _, r := range act {
			r.Op = int64(i)
			records = append(records, r)
		}
	}
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
	h, err := Assemble(records)
	fatal.If(t, err)
	return h
}

// op is a call and its return, unless it never comes back, of a process or on a hold.
func op(who string, kind Kind, from, to int64, res Result, changes ...func(*Record)) []Record {
	r := Record{Proc: who[:1], Kind: kind, Name: "n"}
	if len(who) > 1 {
		r.Hold = who
	}
	for _, change := range changes {
		change(&r)
	}
	call, ret := r, r
	call.At, call.Event, call.Limit = from, Call, max(call.Limit, second)
	ret.At, ret.Event, ret.Result = to, Return, res
	if to == never {
		return []Record{call}
	}
	return []Record{call, ret}
}

// hold is a lock that wins.
func hold(id string, from, to, until, token int64, changes ...func(*Record)) []Record {
	return op(id, Lock, from, to, OK, append(changes, func(r *Record) { r.Until, r.Token = until, token })...)
}

func reads(r *Record)   { r.Shares = true }
func ann(r *Record)     { r.Owner = "ann" }
func bob(r *Record)     { r.Owner = "bob" }
func queues(r *Record)  { r.Queues = true }
func minHold(r *Record) { r.Min = second }

func under(root string) func(*Record) { return func(r *Record) { r.Root = root } }
func token(n int64) func(*Record)     { return func(r *Record) { r.Token = n } }
func limit(long int64) func(*Record)  { return func(r *Record) { r.Limit = long } }
func permits(n, size int64) func(*Record) {
	return func(r *Record) { r.Type, r.Weight, r.Size = Semaphore, n, size }
}
func weight(n, ttl int64) func(*Record)  { return func(r *Record) { r.Weight, r.TTL = n, ttl } }
func set(from, to, count int64) []Record { return op("s", Set, from, to, OK, weight(count, second)) }

// notice is what the library said of a hold.
func notice(event Event, hold string, at, until int64, res Result) []Record {
	return []Record{{At: at, Proc: hold[:1], Event: event, Hold: hold, Until: until, Result: res, Name: "n"}}
}

func event(event Event, proc string, at int64) []Record {
	return []Record{{At: at, Proc: proc, Event: event}}
}

func stall(proc string, at, long int64) []Record {
	return []Record{{At: at, Proc: proc, Event: Stall, Limit: long}}
}

func TestCheck(t *testing.T) {
	first, rival := hold("a1", 0, 10, 100, 5), hold("b1", 20, 55, 200, 6)
	kept := hold("a1", 0, 10, 100, 5, minHold)
	passedFiveTimes := story{op("w1", Lock, 0, second, TimedOut, queues)}
	for i := range int64(5) {
		from := second/2 + i*1000
		passedFiveTimes = append(passedFiveTimes, hold(fmt.Sprint(i, "r"), from, from+10, from+20, 100+i, reads))
	}
	var hiccups story
	for i := range int64(20) {
		hiccups = append(hiccups, stall("a", i*second/10, second/50))
	}
	for _, c := range []struct {
		name  string
		story story
		want  string // the rules broken
	}{
		{"one after the other", story{first, op("a1", Release, 50, 60, OK), rival}, ""},
		{"both trusted", story{first, rival}, judge.Overlap},
		{"a third overlaps the first, which outlasts the second",
			story{hold("a1", 0, 10, 1000, 5), hold("b1", 20, 30, 40, 6),
				hold("c1", 20, 500, 900, 7)}, judge.Overlap + " " + judge.Overlap},
		{"another name", story{first, hold("b1", 20, 55, 200, 5, func(r *Record) { r.Name = "m" })}, ""},
		{"after the trust end", story{first, hold("b1", 20, 101, 200, 6)}, ""},
		{"a renewal moved the trust end on",
			story{first, notice(Trust, "a1", 50, 150, ""), hold("b1", 20, 101, 200, 6)}, judge.Overlap},
		{"after the notice of the loss", story{first, notice(Lost, "a1", 30, 0, ""), hold("b1", 20, 31, 200, 6)}, ""},
		{"after the kill", story{first, event(Kill, "a", 30), hold("b1", 20, 31, 200, 6)}, ""},
		{"after the client was closed", story{first, event(Close, "a", 30), hold("b1", 20, 31, 200, 6)}, ""},
		{"over when it returned", story{first, hold("b1", 2, 50, 40, 6)}, ""},
		{"a stopped holder is trusted until its trust end",
			story{first, event(Stop, "a", 20), hold("b1", 20, 90, 200, 6), event(Cont, "a", 150)}, judge.Overlap},
		{"an entry does not overlap its lease",
			story{first, hold("a2", 20, 30, 100, 5, under("a1")), hold("a3", 31, 32, 100, 5, under("a2"))}, ""},
		{"an entry outlasts its lease and excludes others",
			story{first, hold("a2", 20, 30, 100, 5, under("a1")), op("a1", Release, 40, 41, OK),
				hold("b1", 20, 90, 200, 6)}, judge.Overlap},
		{"an entry with a token of its own", story{first, hold("a2", 20, 30, 100, 6, under("a1"))}, judge.Token},
		{"a lock under a lease that was over", story{first, hold("a2", 90, 110, 200, 6, under("a1"))}, ""},
		{"the same token twice", story{hold("a1", 0, 10, 20, 5), hold("b1", 30, 40, 50, 5)}, judge.Token},
		{"a smaller token, called later and over when it returned",
			story{hold("a1", 0, 10, 20, 6), hold("b1", 30, 40, 35, 5)}, judge.Token},
		{"a smaller token, called before, trusted after",
			story{hold("a1", 0, 10, 20, 6), hold("b1", 1, 40, 50, 5)}, judge.Token},
		{"a smaller token, granted before and returned late",
			story{hold("a1", 5, 30, 50, 6), hold("b1", 1, 40, 20, 5)}, ""},
		{"no token", story{hold("a1", 0, 10, 20, 0)}, judge.Token},
		{"released twice", story{first, op("a1", Release, 20, 21, OK), op("a1", Release, 22, 23, OK)}, judge.Release},
		{"released after the loss",
			story{first, notice(Lost, "a1", 15, 0, ""), op("a1", Release, 20, 21, OK)}, judge.Release},
		{"released after another had it",
			story{hold("a1", 0, 10, 20, 5), hold("b1", 20, 30, 40, 6), op("a1", Release, 50, 60, OK)}, judge.Release},
		{"trusted after the loss",
			story{first, notice(Lost, "a1", 15, 0, ""), notice(Trust, "a1", 16, 100, "")}, judge.Trust},
		{"trusted after its end", story{first, notice(Trust, "a1", 101, 100, Overdue)}, judge.Trust},
		{"lost without a cause",
			story{first, notice(Lost, "a1", 101, 100, ""), notice(Lost, "a1", 102, 100, Failed)}, judge.Trust},
		{"refused while trusted", story{first, op("a1", Write, 20, 30, Refused)}, judge.Resource},
		{"refused late", story{first, op("a1", Write, 90, 110, Refused)}, ""},
		{"an update lost", story{first, op("a1", Write, 20, 30, LostUpdate)}, judge.Resource},
		{"never returned", story{op("a", Lock, 0, never, "")}, judge.Stuck},
		{"killed while it waited", story{op("a", Lock, 0, never, ""), event(Kill, "a", 30)}, ""},
		{"back too late", story{op("a1", Lock, 0, 7*second, TimedOut)}, judge.Idle + " " + judge.Stuck},
		{"stopped while it waited",
			story{event(Stop, "a", 10), event(Cont, "a", 6*second), op("a1", Lock, 0, 7*second, TimedOut)}, ""},
		{"stood still by itself while it waited",
			story{stall("a", second, second), op("a1", Lock, 0, 3*second, TimedOut)}, ""},
		{"the server stood still by itself meanwhile",
			story{stall(Server, second, second), op("a1", Lock, 0, 3*second, TimedOut)}, ""},
		{"had hiccups while it waited",
			append(hiccups, op("a1", Lock, 0, 3*second, TimedOut)), judge.Idle},
		{"stood still by itself long before",
			story{stall("a", 0, second), op("a1", Lock, 3*second, 5*second, TimedOut)}, judge.Idle},
		{"a process that has no part in it stood still by itself",
			story{stall("b", second, second), op("a1", Lock, 0, 3*second, TimedOut)}, judge.Idle},
		{"readers share", story{hold("a1", 0, 10, 100, 5, reads), hold("b1", 20, 55, 200, 6, reads)}, ""},
		{"a reader beside a writer", story{first, hold("b1", 20, 55, 200, 6, reads)}, judge.Overlap},
		{"a reader after a downgrade",
			story{first, op("a1", Downgrade, 20, 25, OK), hold("b1", 15, 22, 200, 6, reads)}, ""},
		{"a writer after a downgrade",
			story{first, op("a1", Downgrade, 20, 25, OK), hold("b1", 15, 30, 200, 6)}, judge.Overlap},
		{"a reader of the same process joins a downgraded lease",
			story{first, op("a1", Downgrade, 20, 25, OK), hold("a2", 26, 27, 200, 5, reads)}, ""},
		{"a writer has the token of a downgraded lease",
			story{hold("a1", 0, 10, 20, 5), op("a1", Downgrade, 15, 16, OK), hold("a2", 26, 27, 200, 5)}, judge.Token},
		{"a reader of another process has its token",
			story{first, op("a1", Downgrade, 15, 16, OK), hold("b1", 26, 27, 200, 5, reads)}, judge.Token},
		{"a reader after a writer has a smaller token",
			story{hold("a1", 0, 10, 20, 5), hold("b1", 26, 27, 200, 4, reads)}, judge.Token},
		{"of one owner", story{hold("a1", 0, 10, 100, 5, ann), hold("b1", 20, 55, 200, 6, ann)}, ""},
		{"of two owners", story{hold("a1", 0, 10, 100, 5, ann), hold("b1", 20, 55, 200, 6, bob)}, judge.Overlap},
		{"detached, and another after it",
			story{first, notice(Detach, "a1", 20, 0, ""), hold("b1", 25, 30, 200, 6)}, ""},
		{"permits enough",
			story{hold("a1", 0, 10, 100, 5, permits(2, 4)), hold("b1", 20, 30, 100, 6, permits(2, 4))}, ""},
		{"too many permits",
			story{hold("a1", 0, 10, 100, 5, permits(2, 4)), hold("b1", 20, 30, 100, 6, permits(3, 4))}, judge.Permits},
		{"before the end of a min hold",
			story{kept, op("a1", Release, 20, 30, OK), hold("b1", 20, 40, 200, 6)}, judge.MinHold},
		{"a reader before the end of a writer's min hold",
			story{kept, op("a1", Release, 20, 30, OK), hold("b1", 20, 40, 200, 6, reads)}, judge.MinHold},
		{"a reader before the end of the min hold of a writer that was downgraded",
			story{kept, op("a1", Downgrade, 15, 18, OK), op("a1", Release, 20, 30, OK),
				hold("b1", 20, 40, 200, 6, reads)}, ""},
		{"a reader before the end of the min hold of a writer whose own reader stays",
			story{kept, hold("a2", 12, 14, 100, 5, under("a1"), reads), op("a1", Release, 15, 18, OK),
				hold("b1", 20, 40, 200, 6, reads)}, ""},
		{"a reader before the end of the min hold of a writer whose own reader had ended",
			story{kept, hold("a2", 12, 13, 100, 5, under("a1"), reads), op("a2", Release, 14, 14, OK),
				op("a1", Release, 15, 18, OK), hold("b1", 20, 40, 200, 6, reads)}, judge.MinHold},
		{"the same owner before the end of its min hold",
			story{hold("a1", 0, 10, 100, 5, ann, minHold), op("a1", Release, 20, 30, OK),
				hold("b1", 20, 40, 200, 6, ann)}, ""},
		{"another leader than the one who leads", story{first, op("b", Leader, 20, 30, OK, token(4))}, judge.Leader},
		{"no leader although one leads", story{first, op("b", Leader, 20, 30, NoLeader)}, judge.Leader},
		{"a leader who may have gone", story{hold("a1", 0, 10, 25, 5), op("b", Leader, 20, 30, NoLeader)}, ""},
		{"a latch opens",
			story{set(0, 10, 2), op("a", CountDown, 20, 30, OK), op("b", CountDown, 20, 40, OK),
				op("c", Wait, 5, 50, OK)}, ""},
		{"a latch opens too early",
			story{set(0, 10, 2), op("a", CountDown, 20, 30, OK), op("c", Wait, 5, 50, OK)}, judge.Latch},
		{"a latch is set twice", story{set(0, 10, 2), set(20, 30, 1)}, judge.Latch},
		{"waits while nobody holds", story{op("b1", Lock, 0, 3*second, TimedOut, limit(3*second))}, judge.Idle},
		{"waits for one who was killed",
			story{first, event(Kill, "a", 30), op("b1", Lock, 20, second+second/2, TimedOut)}, ""},
		{"a writer is passed again and again", passedFiveTimes, judge.Order},
		{"passed again and again while it stood still by itself",
			append(passedFiveTimes, stall("w", second/4, second/2)), ""},
		{"a reader saw a change while it was trusted",
			story{hold("a1", 0, 10, 100, 5, reads), op("a1", Read, 20, 30, Changed)}, judge.Resource},
		{"Check says yes after another had it",
			story{hold("a1", 0, 10, 20, 5), hold("b1", 20, 30, 40, 6), op("a1", Confirm, 50, 60, OK)}, judge.Trust},
		{"an error that nothing explains", story{op("a1", Lock, 0, 1, Failed)}, judge.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.story.assemble(t)
			found := Check(h, time.Second)
			var got []string
			for _, v := range found {
				got = append(got, v.Rule)
				if text := v.String(); !strings.HasPrefix(text, v.Rule+`: "n": `) || !strings.Contains(text, "\n  ") {
					t.Errorf("unreadable: %s", text)
				}
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("rules broken %q, want %q", got, c.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	whole := `{"at":1,"p":"a","ev":"stop"}` + "\n"
	for _, c := range []struct {
		name, data string
		records    int
		bad        bool
	}{
		{"empty", "", 0, false},
		{"whole", whole + whole, 2, false},
		{"killed in the middle of a line", whole + `{"at":2,"p":"a","e`, 1, false},
		{"broken inside", whole + "{\n" + whole, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			fatal.If(t, os.WriteFile(filepath.Join(dir, "a"+suffix), []byte(c.data), 0o600))
			records, err := Load(dir)
			if len(records) != c.records || (err != nil) != c.bad {
				t.Errorf("%d records, error %v", len(records), err)
			}
		})
	}
}
