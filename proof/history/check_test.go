package history

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/proof/judge"
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
func (s *story) hold(proc, id string, from, to, until, token int64) *Record {
	r := s.op(proc, Lock, id, from, to, OK)
	r.Until, r.Token = until, token
	return r
}

// minHold adds a lock that wins with a min hold of a second.
func (s *story) minHold() {
	s.hold("a", "a1", 0, 10, 100, 5)
	s.records[len(s.records)-2].Min = int64(time.Second)
}

// passedFiveTimes adds a writer that five readers pass while it waits for a second.
func (s *story) passedFiveTimes() {
	s.op("w", Lock, "w1", 0, int64(time.Second), TimedOut)
	s.records[len(s.records)-2].Queues = true
	for i := range int64(5) {
		from := int64(time.Second/2) + i*1000
		s.hold(fmt.Sprint("r", i), fmt.Sprint("r", i, "#1"), from, from+10, from+20, 100+i).Shares = true
	}
}

// permits adds an acquire that wins some of so many.
func (s *story) permits(proc, id string, from, to, until, token, weight, size int64) {
	s.hold(proc, id, from, to, until, token)
	for i := len(s.records) - 2; i < len(s.records); i++ {
		s.records[i].Type, s.records[i].Weight, s.records[i].Size = Semaphore, weight, size
	}
}

// resize adds one to so many permits.
func (s *story) resize(from, to, permits int64) {
	s.op("c", Resize, "", from, to, OK)
	s.records[len(s.records)-2].Weight = permits
}

// set adds a latch that is set.
func (s *story) set(from, to, count int64) {
	s.op("s", Set, "", from, to, OK)
	call := &s.records[len(s.records)-2]
	call.Weight, call.TTL = count, int64(time.Second)
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
		}, []string{judge.Overlap}},
		{"a third overlaps the first, which outlasts the second", func(s *story) {
			s.hold("a", "a1", 0, 10, 1000, 5)
			s.hold("b", "b1", 20, 30, 40, 6)
			s.hold("c", "c1", 20, 500, 900, 7)
		}, []string{judge.Overlap, judge.Overlap}},
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
		}, []string{judge.Overlap}},
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
		}, []string{judge.Overlap}},
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
		}, []string{judge.Overlap}},
		{"an entry with a token of its own", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.enter("a", "a2", "a1", 20, 30, 100, 6)
		}, []string{judge.Token}},
		{"a lock under a lease that was over", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.enter("a", "a2", "a1", 90, 110, 200, 6)
		}, nil},
		{"the same token twice", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 5)
			s.hold("b", "b1", 30, 40, 50, 5)
		}, []string{judge.Token}},
		{"a smaller token", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 6)
			s.hold("b", "b1", 30, 40, 35, 5) // over when it returned, but called later
		}, []string{judge.Token}},
		{"a smaller token, called before, trusted after", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 6)
			s.hold("b", "b1", 1, 40, 50, 5)
		}, []string{judge.Token}},
		{"a smaller token, granted before and returned late", func(s *story) {
			s.hold("a", "a1", 5, 30, 50, 6)
			s.hold("b", "b1", 1, 40, 20, 5)
		}, nil},
		{"no token", func(s *story) { s.hold("a", "a1", 0, 10, 20, 0) }, []string{judge.Token}},
		{"released twice", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Release, "a1", 20, 21, OK)
			s.op("a", Release, "a1", 22, 23, OK)
		}, []string{judge.Release}},
		{"released twice and told", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Release, "a1", 20, 21, OK)
			s.op("a", Release, "a1", 22, 23, NotHeld)
		}, nil},
		{"released after the loss", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Lost, "a", "a1", 15, 0, "")
			s.op("a", Release, "a1", 20, 21, OK)
		}, []string{judge.Release}},
		{"released after another had it", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 5)
			s.hold("b", "b1", 20, 30, 40, 6)
			s.op("a", Release, "a1", 50, 60, OK)
		}, []string{judge.Release}},
		{"trusted after the loss", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Lost, "a", "a1", 15, 0, "")
			s.word(Trust, "a", "a1", 16, 100, "")
		}, []string{judge.Trust}},
		{"trusted after its end", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Trust, "a", "a1", 101, 100, Overdue)
		}, []string{judge.Trust}},
		{"lost without a cause", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Lost, "a", "a1", 101, 100, "")
			s.word(Lost, "a", "a1", 102, 100, Failed)
		}, []string{judge.Trust}},
		{"refused while trusted", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Write, "a1", 20, 30, Refused)
		}, []string{judge.Resource}},
		{"refused late", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Write, "a1", 90, 110, Refused)
		}, nil},
		{"an update lost", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Write, "a1", 20, 30, LostUpdate)
		}, []string{judge.Resource}},
		{"never returned", func(s *story) {
			s.add(Record{Proc: "a", Op: 1, Event: Call, Kind: Lock, Name: "n"})
		}, []string{judge.Stuck}},
		{"killed while it waited", func(s *story) {
			s.add(Record{Proc: "a", Op: 1, Event: Call, Kind: Lock, Name: "n"})
			s.process(Kill, "a", 30)
		}, nil},
		{"back too late", func(s *story) { s.op("a", Lock, "a1", 0, 7*second, TimedOut) },
			[]string{judge.Idle, judge.Stuck}},
		{"stopped while it waited", func(s *story) {
			s.process(Stop, "a", 10)
			s.process(Cont, "a", 6*second)
			s.op("a", Lock, "a1", 0, 7*second, TimedOut)
		}, nil},
		{"stood still by itself while it waited", func(s *story) {
			s.add(Record{At: second, Proc: "a", Event: Stall, Limit: second})
			s.op("a", Lock, "a1", 0, 3*second, TimedOut)
		}, nil},
		{"the server stood still by itself meanwhile", func(s *story) {
			s.add(Record{At: second, Proc: Server, Event: Stall, Limit: second})
			s.op("a", Lock, "a1", 0, 3*second, TimedOut)
		}, nil},
		{"had hiccups while it waited", func(s *story) {
			for i := range int64(20) {
				s.add(Record{At: i * second / 10, Proc: "a", Event: Stall, Limit: second / 50})
			}
			s.op("a", Lock, "a1", 0, 3*second, TimedOut)
		}, []string{judge.Idle}},
		{"stood still by itself long before", func(s *story) {
			s.add(Record{At: 0, Proc: "a", Event: Stall, Limit: second})
			s.op("a", Lock, "a1", 3*second, 5*second, TimedOut)
		}, []string{judge.Idle}},
		{"a process that has no part in it stood still by itself", func(s *story) {
			s.add(Record{At: second, Proc: "b", Event: Stall, Limit: second})
			s.op("a", Lock, "a1", 0, 3*second, TimedOut)
		}, []string{judge.Idle}},
		{"readers share", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5).Shares = true
			s.hold("b", "b1", 20, 55, 200, 6).Shares = true
		}, nil},
		{"a reader beside a writer", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.hold("b", "b1", 20, 55, 200, 6).Shares = true
		}, []string{judge.Overlap}},
		{"a writer beside a reader", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5).Shares = true
			s.hold("b", "b1", 20, 55, 200, 6)
		}, []string{judge.Overlap}},
		{"a reader after a downgrade", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Downgrade, "a1", 20, 25, OK)
			s.hold("b", "b1", 15, 22, 200, 6).Shares = true
		}, nil},
		{"a writer after a downgrade", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Downgrade, "a1", 20, 25, OK)
			s.hold("b", "b1", 15, 30, 200, 6)
		}, []string{judge.Overlap}},
		{"a reader of the same process joins a downgraded lease", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Downgrade, "a1", 20, 25, OK)
			s.hold("a", "a2", 26, 27, 200, 5).Shares = true
		}, nil},
		{"a writer has the token of a downgraded lease", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 5)
			s.op("a", Downgrade, "a1", 15, 16, OK)
			s.hold("a", "a2", 26, 27, 200, 5)
		}, []string{judge.Token}},
		{"a reader of another process has its token", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("a", Downgrade, "a1", 15, 16, OK)
			s.hold("b", "b1", 26, 27, 200, 5).Shares = true
		}, []string{judge.Token}},
		{"a reader after a writer has a smaller token", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 5)
			s.hold("b", "b1", 26, 27, 200, 4).Shares = true
		}, []string{judge.Token}},
		{"of one owner", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5).Owner = "ann"
			s.hold("b", "b1", 20, 55, 200, 6).Owner = "ann"
		}, nil},
		{"of two owners", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5).Owner = "ann"
			s.hold("b", "b1", 20, 55, 200, 6).Owner = "bob"
		}, []string{judge.Overlap}},
		{"detached, and another after it", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.word(Detach, "a", "a1", 20, 0, "")
			s.hold("b", "b1", 25, 30, 200, 6)
		}, nil},
		{"permits enough", func(s *story) {
			s.permits("a", "a1", 0, 10, 100, 5, 2, 4)
			s.permits("b", "b1", 20, 30, 100, 6, 2, 4)
		}, nil},
		{"too many permits", func(s *story) {
			s.permits("a", "a1", 0, 10, 100, 5, 2, 4)
			s.permits("b", "b1", 20, 30, 100, 6, 3, 4)
		}, []string{judge.Permits}},
		{"many permits while a Resize is under way", func(s *story) {
			s.permits("a", "a1", 0, 10, 100, 5, 2, 4)
			s.resize(15, 25, 5)
			s.permits("b", "b1", 20, 30, 100, 6, 3, 4)
		}, nil},
		{"many permits after a Resize, behind another of its process", func(s *story) {
			s.permits("a", "a1", 0, 10, 100, 5, 3, 4)
			s.resize(4, 6, 6)
			s.permits("a", "a2", 8, 30, 100, 6, 3, 4)
		}, nil},
		{"many permits after a Resize, behind nobody of its process", func(s *story) {
			s.permits("a", "a1", 0, 10, 100, 5, 3, 4)
			s.resize(4, 6, 6)
			s.permits("b", "b1", 8, 30, 100, 6, 3, 4)
		}, []string{judge.Permits}},
		{"more permits than there ever were, behind another of its process", func(s *story) {
			s.permits("a", "a1", 0, 10, 100, 5, 3, 4)
			s.permits("a", "a2", 8, 30, 100, 6, 3, 4)
		}, []string{judge.Permits}},
		{"kept what it had when there were more", func(s *story) {
			s.permits("a", "a1", 0, 10, 100, 5, 4, 4)
			s.permits("b", "b1", 20, 30, 100, 6, 1, 2)
		}, []string{judge.Permits}},
		{"before the end of a min hold", func(s *story) {
			s.minHold()
			s.op("a", Release, "a1", 20, 30, OK)
			s.hold("b", "b1", 20, 40, 200, 6)
		}, []string{judge.MinHold}},
		{"a reader before the end of a writer's min hold", func(s *story) {
			s.minHold()
			s.op("a", Release, "a1", 20, 30, OK)
			s.hold("b", "b1", 20, 40, 200, 6).Shares = true
		}, []string{judge.MinHold}},
		{"a reader before the end of the min hold of a writer that was downgraded", func(s *story) {
			s.minHold()
			s.op("a", Downgrade, "a1", 15, 18, OK)
			s.op("a", Release, "a1", 20, 30, OK)
			s.hold("b", "b1", 20, 40, 200, 6).Shares = true
		}, nil},
		{"a reader before the end of the min hold of a writer whose own reader stays", func(s *story) {
			s.minHold()
			s.enter("a", "a2", "a1", 12, 14, 100, 5)
			s.records[len(s.records)-1].Shares = true
			s.op("a", Release, "a1", 15, 18, OK)
			s.hold("b", "b1", 20, 40, 200, 6).Shares = true
		}, nil},
		{"a reader before the end of the min hold of a writer whose own entry was downgraded", func(s *story) {
			s.minHold()
			s.enter("a", "a2", "a1", 12, 13, 100, 5)
			s.op("a", Release, "a1", 14, 14, OK)
			s.op("a", Downgrade, "a2", 15, 18, OK)
			s.hold("b", "b1", 20, 40, 200, 6).Shares = true
		}, nil},
		{"a reader before the end of the min hold of a writer whose own reader came by another entry", func(s *story) {
			s.minHold()
			s.enter("a", "a2", "a1", 11, 12, 100, 5)
			s.op("a", Release, "a1", 13, 13, OK)
			s.enter("a", "a3", "a2", 14, 15, 100, 5)
			s.records[len(s.records)-1].Shares = true
			s.op("a", Release, "a2", 16, 18, OK)
			s.hold("b", "b1", 20, 40, 200, 6).Shares = true
		}, nil},
		{"a reader before the end of the min hold of a writer whose own reader had ended", func(s *story) {
			s.minHold()
			s.enter("a", "a2", "a1", 12, 13, 100, 5)
			s.records[len(s.records)-1].Shares = true
			s.op("a", Release, "a2", 14, 14, OK)
			s.op("a", Release, "a1", 15, 18, OK)
			s.hold("b", "b1", 20, 40, 200, 6).Shares = true
		}, []string{judge.MinHold}},
		{"the same owner before the end of its min hold", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5).Owner = "ann"
			s.records[len(s.records)-2].Min = second
			s.op("a", Release, "a1", 20, 30, OK)
			s.hold("b", "b1", 20, 40, 200, 6).Owner = "ann"
		}, nil},
		{"another leader than the one who leads", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("b", Leader, "", 20, 30, OK).Token = 4
		}, []string{judge.Leader}},
		{"no leader although one leads", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.op("b", Leader, "", 20, 30, NoLeader)
		}, []string{judge.Leader}},
		{"a leader who may have gone", func(s *story) {
			s.hold("a", "a1", 0, 10, 25, 5)
			s.op("b", Leader, "", 20, 30, NoLeader)
		}, nil},
		{"a latch opens", func(s *story) {
			s.set(0, 10, 2)
			s.op("a", CountDown, "", 20, 30, OK)
			s.op("b", CountDown, "", 20, 40, OK)
			s.op("c", Wait, "", 5, 50, OK)
		}, nil},
		{"a latch opens too early", func(s *story) {
			s.set(0, 10, 2)
			s.op("a", CountDown, "", 20, 30, OK)
			s.op("c", Wait, "", 5, 50, OK)
		}, []string{judge.Latch}},
		{"a latch is set twice", func(s *story) {
			s.set(0, 10, 2)
			s.set(20, 30, 1)
		}, []string{judge.Latch}},
		{"waits while nobody holds", func(s *story) {
			s.op("b", Lock, "b1", 0, 3*second, TimedOut)
			s.records[len(s.records)-2].Limit = 3 * second
		}, []string{judge.Idle}},
		{"waits for one who was killed", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5)
			s.process(Kill, "a", 30)
			s.op("b", Lock, "b1", 20, second+second/2, TimedOut)
		}, nil},
		{"a writer is passed again and again", (*story).passedFiveTimes, []string{judge.Order}},
		{"passed again and again while it stood still by itself", func(s *story) {
			s.passedFiveTimes()
			s.add(Record{At: second / 4, Proc: "w", Event: Stall, Limit: second / 2})
		}, nil},
		{"a reader saw a change while it was trusted", func(s *story) {
			s.hold("a", "a1", 0, 10, 100, 5).Shares = true
			s.op("a", Read, "a1", 20, 30, Changed)
		}, []string{judge.Resource}},
		{"Check says yes after another had it", func(s *story) {
			s.hold("a", "a1", 0, 10, 20, 5)
			s.hold("b", "b1", 20, 30, 40, 6)
			s.op("a", Confirm, "a1", 50, 60, OK)
		}, []string{judge.Trust}},
		{"an error that nothing explains", func(s *story) {
			s.op("a", Lock, "a1", 0, 1, Failed)
		}, []string{judge.Failed}},
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
			var page bytes.Buffer
			if err := Draw(&page, h, Check(h, Limits{})); err != nil ||
				!strings.Contains(page.String(), `<div class="lane"`) {
				t.Errorf("not drawn: %v\n%s", err, page.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("rules broken %v, want %v", got, c.want)
			}
		})
	}
}

func TestDisturbed(t *testing.T) {
	second := int64(time.Second)
	for _, c := range []struct {
		name string
		proc string
		at   int64
		want bool
	}{
		{"nothing", "c", 10 * second, false},
		{"it stood still shortly before", "a", 10*second - second/2, true},
		{"it stood still meanwhile", "a", 10*second + second/10, true},
		{"the server did", Server, 10*second + second/10, true},
		{"another did", "b", 10*second + second/10, false},
		{"long before", "a", 5 * second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &story{}
			s.add(Record{At: c.at, Proc: c.proc, Event: Stall, Limit: second / 10})
			s.process(Close, "a", 10*second)
			slices.SortStableFunc(s.records, func(a, b Record) int { return int(a.At - b.At) })
			h, err := Assemble(s.records)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Disturbed("a"); got != c.want {
				t.Errorf("disturbed: %v", got)
			}
		})
	}
}
