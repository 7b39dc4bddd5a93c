package versions

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
	"github.com/holdfast-go/holdfast/proof/workload"
)

// Each step is taken in both directions: a holder of one version, a contender of the other.
func TestVersionsSideBySide(t *testing.T) {
	now, earlier := buildBoth(t, false)
	inBothOrders(t, now, earlier, func(t *testing.T, first, second *peer, masters []*redisserver.Server) {
		s := &side{T: t, first: first, second: second, queue: len(masters) == 1}
		s.checkMutex()
		s.checkReaders()
		s.checkBreak()
		s.checkTicket()
	})
}

// inBothOrders runs a test at one server and at a quorum, with each of two versions first.
func inBothOrders(t *testing.T, one, other version,
	test func(t *testing.T, first, second *peer, masters []*redisserver.Server)) {
	for name, servers := range map[string]int{"one server": 1, "quorum of three": 3} {
		for _, pair := range [][2]version{{one, other}, {other, one}} {
			t.Run(name+", "+pair[0].name+" first", func(t *testing.T) {
				var masters []*redisserver.Server
				for range servers {
					masters = append(masters, redisserver.Start(t))
				}
				test(t, pair[0].startAgent(t, masters...), pair[1].startAgent(t, masters...), masters)
			})
		}
	}
}

// A side has a holder of one version and a contender of the other.
type side struct {
	*testing.T
	first, second *peer
	queue         bool // a quorum has none
}

// checkMutex: the contender is refused, waits, and gets the lock with a larger token, to and fro.
func (s *side) checkMutex() {
	s.Helper()
	holder, contender := s.first, s.second
	token := holder.mustDo(Request{Do: "lock", Kind: "mutex", Name: "m", Lease: "l0"}).Token
	for i := range 6 {
		mine, its := leaseName(i), leaseName(i+1)
		contender.mustFail("held", Request{Do: "try", Kind: "mutex", Name: "m", Lease: "never"})
		waiting := contender.send(Request{Do: "lock", Kind: "mutex", Name: "m", Lease: its})
		s.awaitQueued(holder, "m")
		holder.mustDo(Request{Do: "check", Lease: mine})
		holder.mustDo(Request{Do: "release", Lease: mine})
		got := contender.await(waiting)
		if got.Error != "" || got.Token <= token {
			s.Fatalf("hand-over %d from %s to %s: token %d after %d, error %q", i, holder.name, contender.name,
				got.Token, token, got.Error)
		}
		token = got.Token
		holder, contender = contender, holder
	}
	holder.mustDo(Request{Do: "release", Lease: leaseName(6)})
}

func leaseName(i int) string { return "l" + string(rune('0'+i)) }

// awaitQueued waits until the contender stands in the queue, where there is one.
func (s *side) awaitQueued(p *peer, name string) {
	s.Helper()
	if s.queue {
		p.awaitWaiters(name, 1)
	}
}

// checkReaders share, a writer waits for both, and excludes both.
func (s *side) checkReaders() {
	s.Helper()
	s.first.mustDo(Request{Do: "lock", Kind: "read", Name: "rw", Lease: "r1"})
	s.second.mustDo(Request{Do: "lock", Kind: "read", Name: "rw", Lease: "r2"})
	for _, p := range []*peer{s.first, s.second} {
		p.mustFail("held", Request{Do: "try", Kind: "write", Name: "rw", Lease: "never"})
	}
	writing := s.second.send(Request{Do: "lock", Kind: "write", Name: "rw", Lease: "w"})
	s.awaitQueued(s.first, "rw")
	s.second.mustDo(Request{Do: "release", Lease: "r2"})
	s.first.mustDo(Request{Do: "check", Lease: "r1"})
	s.first.mustDo(Request{Do: "release", Lease: "r1"})
	if got := s.second.await(writing); got.Error != "" {
		s.Fatalf("%s: the writer: %s", s.second.name, got.Error)
	}
	s.first.mustFail("held", Request{Do: "try", Kind: "read", Name: "rw", Lease: "never"})
	s.second.mustDo(Request{Do: "release", Lease: "w"})
}

// broken: one version sees the hold of the other, and breaks it. The holder is told why.
func (s *side) checkBreak() {
	s.Helper()
	token := s.first.mustDo(Request{Do: "lock", Kind: "mutex", Name: "b", Lease: "b"}).Token
	if got := s.second.mustDo(Request{Do: "inspect", Name: "b"}); got.Holders != 1 || got.Foreign != "" {
		s.Fatalf("%s sees %d holders, foreign %q", s.second.name, got.Holders, got.Foreign)
	}
	lost := s.first.send(Request{Do: "lost", Lease: "b"})
	s.second.mustDo(Request{Do: "break", Name: "b", Token: token})
	if got := s.first.await(lost); got.Class != "lost broken" {
		s.Fatalf("%s lost it by %q, %s", s.first.name, got.Class, got.Error)
	}
	if after := s.second.mustDo(Request{Do: "lock", Kind: "mutex", Name: "b", Lease: "b2"}); after.Token <= token {
		s.Fatalf("token %d after %d", after.Token, token)
	}
	s.second.mustDo(Request{Do: "release", Lease: "b2"})
}

// ticket: a lease leaves a process of one version, and is taken up by one of the other.
func (s *side) checkTicket() {
	s.Helper()
	token := s.first.mustDo(Request{Do: "lock", Kind: "mutex", Name: "t", Lease: "t"}).Token
	ticket := s.first.mustDo(Request{Do: "detach", Lease: "t"}).Ticket
	if got := s.second.mustDo(Request{Do: "attach", Lease: "t2", Ticket: ticket}); got.Token != token {
		s.Fatalf("attached with token %d, was %d", got.Token, token)
	}
	s.first.mustFail("held", Request{Do: "try", Kind: "mutex", Name: "t", Lease: "never"})
	s.second.mustDo(Request{Do: "check", Lease: "t2"})
	s.second.mustDo(Request{Do: "release", Lease: "t2"})
	s.first.mustFail("ticket", Request{Do: "attach", Lease: "t3", Ticket: ticket})
}

// Processes of both versions use names of every type for 20 s, while processes are killed, stopped
// and cut off. A process that was killed comes back as the other version. HOLDFAST_SEED repeats the
// decisions.
func TestVersionsInOneWorkload(t *testing.T) {
	now, earlier := buildBoth(t, true)
	seed := harness.Number(t, "HOLDFAST_SEED", rand.Uint64())
	t.Logf("HOLDFAST_SEED=%d", seed)
	server := redisserver.Start(t)
	var started atomic.Int64
	run := workload.Run{
		Plan: workload.Plan{
			Addr: server.Addr(), Dir: t.TempDir(), Goroutines: 3, Names: workload.EveryType(), Prefix: "versions",
			Seed: seed,
		},
		Command: func() *exec.Cmd {
			if started.Add(1)%2 == 0 {
				return exec.Command(earlier.worker)
			}
			return exec.Command(now.worker)
		},
		For: 20 * time.Second, Procs: 8, Server: server,
	}
	report, err := run.Do(t.Context())
	t.Logf("%d processes, every second one of the earlier version\n%v", started.Load(), report)
	if err != nil {
		t.Error(err)
	}
	// The earlier version changes the number of permits, and this history knows of one alone.
	report.Violations = slices.DeleteFunc(report.Violations, func(v history.Violation) bool {
		return v.Rule == judge.Permits
	})
	for _, text := range report.Broken() {
		t.Error(text)
	}
	if report.Holds < 100 {
		t.Errorf("%d holds, want at least 100: a run in which little happened shows nothing", report.Holds)
	}
}

// The last version of the format before refuses a lock of this one and its tickets, says so, and
// leaves the key as it was; and the other way round.
func TestVersionsOfAnotherFormatRefuse(t *testing.T) {
	harness.Long(t)
	now, before := build(t, "now", repositoryRoot(t), false), build(t, "the format before",
		unpackCommit(t, formatBefore), false)
	inBothOrders(t, now, before, checkRefusals)
}

// checkRefusals lets a guest meet what a holder of another format has.
func checkRefusals(t *testing.T, holder, guest *peer, masters []*redisserver.Server) {
	t.Helper()
	ticket := holder.detachTicket("m")
	guest.mustFail("ticket", Request{Do: "attach", Ticket: ticket, Lease: "never"})
	holder.mustDo(Request{Do: "attach", Ticket: ticket, Lease: "l"})
	before := listContent(t, masters, "m")
	for _, do := range []string{"try", "lock"} {
		guest.mustFail("store foreign key", Request{Do: do, Kind: "mutex", Name: "m", Lease: "never"})
	}
	if got := guest.mustDo(Request{Do: "inspect", Name: "m"}); got.Foreign == "" {
		t.Errorf("%s inspects a lock of another format, and does not say so", guest.name)
	}
	if after := listContent(t, masters, "m"); after != before {
		t.Errorf("the keys changed from\n%s\nto\n%s", before, after)
	}
	holder.mustDo(Request{Do: "check", Lease: "l"})
	holder.mustDo(Request{Do: "release", Lease: "l"})
	// The name is free for both now, one after the other.
	guest.mustDo(Request{Do: "lock", Kind: "mutex", Name: "m", Lease: "now"})
	holder.mustFail("store foreign key", Request{Do: "try", Kind: "mutex", Name: "m", Lease: "never"})
	guest.mustDo(Request{Do: "release", Lease: "now"})
}

func (p *peer) detachTicket(name string) string {
	p.Helper()
	p.mustDo(Request{Do: "lock", Kind: "mutex", Name: name, Lease: "detached"})
	return p.mustDo(Request{Do: "detach", Lease: "detached"}).Ticket
}

// listContent returns all keys with what identifies the hold in them. Renewals change what stands
// behind it.
func listContent(t *testing.T, masters []*redisserver.Server, name string) (text string) {
	t.Helper()
	const ticket = 26
	for _, srv := range masters {
		text += fmt.Sprintln(harness.Must(t, srv, "KEYS", "versions:{"+name+"}*"),
			harness.Must(t, srv, "KEYS", "versions:{%quorum}*"+name))
		if len(masters) > 1 {
			text += fmt.Sprintln(harness.Must(t, srv, "HKEYS", "versions:{%quorum}:"+name))
			continue
		}
		value, _ := harness.Must(t, srv, "GET", "versions:{"+name+"}").(string)
		text += value[:min(ticket, len(value))]
	}
	return text
}
