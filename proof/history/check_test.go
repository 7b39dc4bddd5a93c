package history

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// story is a history written by hand: each line adds records.
type story struct {
	records []Record
	ops     int64
}

func (s *story) add(r Record) { s.records = append(s.records, r) }

// op adds a call and its return.
func (s *story) op(proc string, kind Kind, hold string, from, to int64, res Result) *Record {
	s.ops++
	base := Record{Proc: proc, Op: s.ops, Kind: kind, Name: "n", Hold: hold}
	call, ret := base, base
	call.At, call.Event, call.Limit = from, Call, int64(time.Second)
	ret.At, ret.Event, ret.Result = to, Return, res
	s.add(call)
	s.add(ret)
	return &s.records[len(s.records)-1]
}

// hold adds a lock that wins.
func (s *story) hold(proc, id string, from, to, until, token int64) {
	r := s.op(proc, Lock, id, from, to, OK)
	r.Until, r.Token = until, token
}

func (s *story) enter(proc, id, root string, from, to, until, token int64) {
	r := s.op(proc, Lock, id, from, to, OK)
	r.Until, r.Token, r.Root = until, token, root
}

func (s *story) word(event Event, proc, hold string, at, until int64, res Result) {
	s.add(Record{At: at, Proc: proc, Event: event, Hold: hold, Until: until, Result: res, Name: "n"})
}

func (s *story) process(event Event, proc string, at int64) {
	s.add(Record{At: at, Proc: proc, Event: event})
}

func TestCheck(t *testing.T) {
	second := int64(time.Second)
	for _, c := range []struct {
		name string
		tell func(s *story)
		want []string // the rules broken
	}{
		{"one after the other", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Release, "a1", 50, 60, OK)
			s.hold("b", "b1", 20, 55, 200, 6)
		}, nil},
		{"both trusted", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.hold("b", "b1", 20, 55, 200, 6)
		}, []string{RuleOverlap}},
		{"a third overlaps the first, which outlasts the second", func(s *story) {
			s.hold("a", "a1", 0, 10, 1000, 5)
			s.hold("b", "b1", 20, 30, 40, 6)
			s.hold("c", "c1", 20, 500, 900, 7)
		}, []string{RuleOverlap, RuleOverlap}},
		{"another name", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			r := s.op("b", Lock, "b1", 20, 55, OK)
			r.Name, r.Until, r.Token = "m", 200, 5
		}, nil},
		{"after the trust end", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.hold("b", "b1", 20, 101, 200, 6)
		}, nil},
		{"a renewal moved the trust end on", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Trust, "a", "a1", 50, 150, "")
			s.hold("b", "b1", 20, 101, 200, 6)
		}, []string{RuleOverlap}},
		{"after the notice of the loss", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Lost, "a", "a1", 30, 0, "")
			s.hold("b", "b1", 20, 31, 200, 6)
		}, nil},
		{"after the kill", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.process(Kill, "a", 30)
			s.hold("b", "b1", 20, 31, 200, 6)
		}, nil},
		{"after the client was closed", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.process(Close, "a", 30)
			s.hold("b", "b1", 20, 31, 200, 6)
		}, nil},
		{"over when it returned", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.hold("b", "b1", 2, 50, 40, 6)
		}, nil},
		{"a stopped holder is trusted until its trust end", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.process(Stop, "a", 20)
			s.hold("b", "b1", 20, 90, 200, 6)
			s.process(Cont, "a", 150)
		}, []string{RuleOverlap}},
		{"an entry does not overlap its lease", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.enter("a", "a2", "a1", 20, 30, 100, 5)
			s.enter("a", "a3", "a2", 31, 32, 100, 5)
		}, nil},
		{"an entry outlasts its lease and excludes others", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.enter("a", "a2", "a1", 20, 30, 100, 5)
			s.op("a", Release, "a1", 40, 41, OK)
			s.hold("b", "b1", 20, 90, 200, 6)
		}, []string{RuleOverlap}},
		{"an entry with a token of its own", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.enter("a", "a2", "a1", 20, 30, 100, 6)
		}, []string{RuleToken}},
		{"a lock under a lease that was over", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.enter("a", "a2", "a1", 90, 110, 200, 6)
		}, nil},
		{"the same token twice", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 5)
			s.hold("b", "b1", 30, 40, 50, 5)
		}, []string{RuleToken}},
		{"a smaller token", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 6)
			s.hold("b", "b1", 30, 40, 35, 5) // over when it returned, but called later
		}, []string{RuleToken}},
		{"a smaller token, called before, trusted after", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 6)
			s.hold("b", "b1", 1, 40, 50, 5)
		}, []string{RuleToken}},
		{"a smaller token, granted before and returned late", func(s *story) {
			s.hold("a", "a1", 5, 30, 50, 6)
			s.hold("b", "b1", 1, 40, 20, 5)
		}, nil},
		{"no token", func(s *story) { s.hold("a", "a1", 0, 10, 20, 0) }, []string{RuleToken}},
		{"released twice", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Release, "a1", 20, 21, OK)
			s.op("a", Release, "a1", 22, 23, OK)
		}, []string{RuleRelease}},
		{"released twice and told", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Release, "a1", 20, 21, OK)
			s.op("a", Release, "a1", 22, 23, NotHeld)
		}, nil},
		{"released after the loss", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Lost, "a", "a1", 15, 0, "")
			s.op("a", Release, "a1", 20, 21, OK)
		}, []string{RuleRelease}},
		{"released after another had it", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 5)
			s.hold("b", "b1", 20, 30, 40, 6)
			s.op("a", Release, "a1", 50, 60, OK)
		}, []string{RuleRelease}},
		{"trusted after the loss", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Lost, "a", "a1", 15, 0, "")
			s.word(Trust, "a", "a1", 16, 100, "")
		}, []string{RuleTrust}},
		{"trusted after its end", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Trust, "a", "a1", 101, 100, Overdue)
		}, []string{RuleTrust}},
		{"lost without a cause", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Lost, "a", "a1", 101, 100, "")
			s.word(Lost, "a", "a1", 102, 100, Failed)
		}, []string{RuleTrust}},
		{"refused while trusted", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Write, "a1", 20, 30, Refused)
		}, []string{RuleResource}},
		{"refused late", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Write, "a1", 90, 110, Refused)
		}, nil},
		{"an update lost", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Write, "a1", 20, 30, LostUpdate)
		}, []string{RuleResource}},
		{"never returned", func(s *story) {
			s.add(Record{Proc: "a", Op: 1, Event: Call, Kind: Lock, Name: "n"})
		}, []string{RuleStuck}},
		{"killed while it waited", func(s *story) {
			s.add(Record{Proc: "a", Op: 1, Event: Call, Kind: Lock, Name: "n"})
			s.process(Kill, "a", 30)
		}, nil},
		{"back too late", func(s *story) { s.op("a", Lock, "a1", 0, 7*second, TimedOut) }, []string{RuleIdle, RuleStuck}},
		{"stopped while it waited", func(s *story) {
			s.process(Stop, "a", 10)
			s.process(Cont, "a", 6*second)
			s.op("a", Lock, "a1", 0, 7*second, TimedOut)
		}, nil},
		{"an error that nothing explains", func(s *story) {
			s.op("a", Lock, "a1", 0, 1, Failed)
		}, []string{RuleFailed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &story{}
			c.tell(s)
			slices.SortStableFunc(s.records, func(a, b Record) int { return int(a.At - b.At) })
			h, err := Assemble(s.records)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range Check(h, Limits{}) {
				got = append(got, v.Rule)
				if text := v.String(); !strings.HasPrefix(text, v.Rule+`: "n": `) || !strings.Contains(text, "\n  ") {
					t.Errorf("unreadable: %s", text)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("rules broken %v, want %v", got, c.want)
			}
		})
	}
}
