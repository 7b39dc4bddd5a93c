package storetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/store"
)

// A SeamBackend is what Seam runs on.
type SeamBackend struct {
	// Open makes a store on a client of its own, which the end of the test closes: as a user with a
	// password, or, where the user is empty, as everybody.
	Open func(tb testing.TB, user, password string) store.Store

	// Address is that of the server where Open leads to one server, and At makes a store as Open
	// does, but of a server at another address. The cases about lost answers need both. Without
	// At they are left out, as for a cluster and for sentinels.
	Address string
	At      func(tb testing.TB, address string) store.Store
}

// Seam tests that a store keeps the contracts of package store, on real servers that nobody else
// uses. It makes users at the servers. On a cluster it moves a slot without keys, and back.
func Seam(t *testing.T, b SeamBackend) {
	for _, c := range []struct {
		name string
		run  func(*seam)
	}{
		{"answers", seamAnswers}, {"in order on one connection", seamInOrder}, {"in one flush", seamOneFlush},
		{"nodes", seamNodes}, {"address", seamAddress}, {"a greeting is refused", seamGreetingRefused},
		{"the deadline bounds", seamBounded}, {"sent once", seamOnce}, {"unsent", seamUnsent},
		{"renewed", seamRenewed}, {"renewed, silent", seamRenewedSilent},
		{"channels", seamChannels}, {"a channel is refused", seamRefused}, {"the connection ends", seamEnds},
		{"a silent server", seamSilent}, {"a channel moves", seamMoves},
	} {
		t.Run(c.name, func(t *testing.T) {
			leak.Check(t)
			c.run(&seam{T: t, backend: b})
		})
	}
}

// A seam is what a case works with.
type seam struct {
	*testing.T
	backend SeamBackend
}

func (s *seam) ctx() context.Context { return s.within(patience) }

func (s *seam) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	s.Cleanup(cancel)
	return ctx
}

// open makes a store, and names its nodes: on a cluster all, else also "", where its own routing
// leads.
func (s *seam) open() (st store.Store, nodes []string) {
	s.Helper()
	st = s.backend.Open(s.T, "", "")
	known, err := st.Nodes(s.ctx())
	if err != nil || len(known.Addresses) == 0 {
		s.Fatalf("nodes %v, %v", known, err)
	}
	if known.Cluster {
		return st, known.Addresses
	}
	return st, append(known.Addresses, "")
}

// openBehindProxy makes a store whose one server is behind a proxy.
func (s *seam) openBehindProxy() (store.Store, *fault.Proxy) {
	s.Helper()
	if s.backend.At == nil {
		s.Skip("no proxy between")
	}
	p := fault.Start(s.T, s.backend.Address)
	return s.backend.At(s.T, p.Addr()), p
}

// must returns the value that a node answers.
func (s *seam) must(st store.Store, node string, args ...any) any {
	s.Helper()
	r := st.Do(s.ctx(), node, []store.Command{args})[0]
	if r.Err != nil || r.Refused != "" {
		s.Fatalf("%v at %q: %+v", args, node, r)
	}
	return r.Value
}

// master returns the first node that is one: a replica refuses WAIT.
func (s *seam) master(st store.Store, nodes []string) string {
	s.Helper()
	return nodes[slices.IndexFunc(nodes, func(node string) bool {
		role, _ := s.must(st, node, "ROLE").([]any)
		return len(role) > 0 && role[0] == "master"
	})]
}

// Every kind of answer is told from the others, each command for itself, alone and among others.
func seamAnswers(s *seam) {
	st, nodes := s.open()
	var commands []store.Command
	var want []store.Reply
	for _, c := range []struct {
		command store.Command
		want    store.Reply
	}{
		{store.Command{"ECHO", "v\x00\r\n"}, store.Reply{Value: "v\x00\r\n"}},
		{store.Command{"ECHO", []byte{0xff, 0}}, store.Reply{Value: "\xff\x00"}},
		{store.Command{"EVAL", "return {1,'two',{false,{}}}", 0},
			store.Reply{Value: []any{int64(1), "two", []any{nil, []any{}}}}},
		{store.Command{"EVAL", "return redis.error_reply('MY word')", 0}, store.Reply{Refused: "MY word"}},
		{store.Command{"EVAL", "return false", int64(0)}, store.Reply{}},
		{store.Command{"EVAL", "return 7", 0}, store.Reply{Value: int64(7)}},
		{store.Command{"EVALSHA", strings.Repeat("0", 40), 0}, store.Reply{Refused: "NOSCRIPT"}},
		{store.Command{"CLIENT", "KILL", "ID", -1}, store.Reply{Refused: "ERR"}},
		{store.Command{"PING"}, store.Reply{Value: "PONG"}},
	} {
		commands, want = append(commands, c.command), append(want, c.want)
	}
	check := func(command store.Command, got, want store.Reply) {
		if strings.HasPrefix(got.Refused, want.Refused+" ") {
			got.Refused = want.Refused // the texts behind the first word differ
		}
		if !reflect.DeepEqual(got, want) {
			s.Errorf("%v: got %#v, want %#v", command, got, want)
		}
	}
	for _, node := range nodes {
		replies := st.Do(s.ctx(), node, commands)
		if len(replies) != len(commands) {
			s.Fatalf("%d replies to %d commands", len(replies), len(commands))
		}
		for i, command := range commands {
			check(command, replies[i], want[i])
			check(command, st.Do(context.Background(), node, commands[i:i+1])[0], want[i])
		}
		if r := st.Do(s.ctx(), node, nil); len(r) != 0 {
			s.Errorf("%d replies to nothing", len(r))
		}
	}
}

// The commands of one Do are on one connection, and no command of another Do is between them.
func seamInOrder(s *seam) {
	st, nodes := s.open()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			node, a, b := nodes[i%len(nodes)], fmt.Sprint("a", i), fmt.Sprint("b", i)
			r := st.Do(s.ctx(), node, []store.Command{{"CLIENT", "ID"}, {"MULTI"}, {"ECHO", a}, {"ECHO", b}, {"EXEC"},
				{"CLIENT", "ID"}})
			if len(r) != 6 || !reflect.DeepEqual(r[4].Value, []any{a, b}) || r[0].Value == nil ||
				r[0].Value != r[5].Value {
				s.Errorf("got %+v", r)
			}
		})
	}
	all.Wait()
}

// The commands of one Do are written together: in one trip of the network, if they are few.
func seamOneFlush(s *seam) {
	st, p := s.openBehindProxy()
	s.must(st, "", "PING")
	p.Record()
	st.Do(s.ctx(), "", slices.Repeat([]store.Command{{"ECHO", "seam"}}, 50))
	if sent := p.Sent("seam"); len(sent) != 1 || strings.Count(sent[0], "seam") != 50 {
		s.Errorf("%d writes", len(sent))
	}
}

// A node that the client has not met gets nothing, and another does not get it in its place.
func seamNodes(s *seam) {
	st, nodes := s.open()
	const elsewhere = "127.0.0.1:1"
	for i, r := range st.Do(s.ctx(), elsewhere, []store.Command{{"PING"}, {"PING"}}) {
		if r.Err == nil || !r.Unsent {
			s.Errorf("command %d: %+v", i, r)
		}
	}
	if l, err := st.Listen(s.ctx(), elsewhere, false, s.events()); err == nil {
		l.Close()
		s.Error("listens at a node that nobody knows")
	}
	if err := st.Refresh(s.ctx(), "key"); err != nil {
		s.Error(err)
	}
	known, err := st.Nodes(s.ctx())
	if err != nil || len(known.Addresses) == 0 || known.Cluster != (nodes[len(nodes)-1] != "") {
		s.Fatalf("nodes %v, %v", known, err)
	}
	for _, node := range known.Addresses {
		s.must(st, node, "PING")
	}
}

// A store that knows where its only server is says so, and no other.
func seamAddress(s *seam) {
	st, nodes := s.open()
	known, ok := st.(store.Addresser)
	if ok && (nodes[len(nodes)-1] != "" || known.Address() != s.backend.Address) {
		s.Errorf("the address is %q, want %q", known.Address(), s.backend.Address)
	}
}

// A server that refuses the greeting of a new connection has refused every command of the Do.
func seamGreetingRefused(s *seam) {
	if s.backend.Address == "" {
		s.Skip("several servers")
	}
	operator, _ := s.open()
	s.must(operator, "", "ACL", "SETUSER", "seam", "reset", "on", ">pw", "+@all")
	st := s.backend.Open(s.T, "seam", "pw")
	s.must(operator, "", "ACL", "SETUSER", "seam", "resetpass", ">other")
	for n := 1; n <= 2; n++ {
		for _, r := range st.Do(s.ctx(), "", slices.Repeat([]store.Command{{"ECHO", "x"}}, n)) {
			if !strings.HasPrefix(r.Refused, "WRONGPASS ") || r.Err != nil {
				s.Errorf("%d commands: got %+v", n, r)
			}
		}
	}
}

// The deadline ends the waiting for an answer. The command may have been written, and is not
// unsent.
func seamBounded(s *seam) {
	st, nodes := s.open()
	master := s.master(st, nodes)
	for _, n := range []int{1, 3} {
		commands := slices.Repeat([]store.Command{{"WAIT", 100, 0}}, n) // as many replicas never are
		began := time.Now()
		for i, r := range st.Do(s.within(300*time.Millisecond), master, commands) {
			if r.Err == nil || i == 0 && r.Unsent {
				s.Errorf("%d of %d: %+v", i, n, r)
			}
		}
		if took := time.Since(began); took > patience/2 {
			s.Errorf("took %v", took)
		}
	}
	if v := s.must(st, master, "PING"); v != "PONG" {
		s.Errorf("got %v", v)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, ctx := range []context.Context{ended, s.within(-time.Second)} {
		if r := st.Do(ctx, master, []store.Command{{"PING"}})[0]; r.Err == nil || !r.Unsent {
			s.Errorf("sent although it was over: %+v", r)
		}
	}
}

// A command whose answer is lost is not sent again, alone and among others.
func seamOnce(s *seam) {
	direct, _ := s.open()
	for n := 1; n <= 3; n += 2 {
		st, p := s.openBehindProxy()
		s.must(direct, "", "DEL", "seam:n")
		lost := p.DropAnswer("INCR")
		replies := st.Do(s.ctx(), "", slices.Repeat([]store.Command{{"INCR", "seam:n"}}, n))
		<-lost
		for _, r := range replies {
			if r.Err == nil || r.Unsent || r.Refused != "" {
				s.Errorf("got %+v", r)
			}
		}
		if v := s.must(direct, "", "GET", "seam:n"); v != fmt.Sprint(n) {
			s.Errorf("carried out %v times, of %d", v, n)
		}
	}
	s.must(direct, "", "DEL", "seam:n")
}

// A command that found no server is unsent.
func seamUnsent(s *seam) {
	st, p := s.openBehindProxy()
	s.must(st, "", "PING")
	p.Close()
	gone := eventually.Holds(patience, func() bool { // a connection that the client still has is written to
		r := st.Do(s.ctx(), "", []store.Command{{"PING"}})[0]
		return r.Err != nil && r.Unsent
	})
	if !gone {
		s.Error("never unsent, and no server is there")
	}
	e := s.events()
	l, err := st.Listen(s.ctx(), "", false, e)
	if err == nil {
		err = l.Subscribe(s.ctx(), "seam:a")
		if err == nil && !soon(func() bool { return e.count("closed") > 0 }) {
			s.Error("listens, and no server is there")
		}
		e.expectNoClosed()
		l.Close()
	}
}

// After Renew, commands and listeners have new connections, and those that rested are gone.
func seamRenewed(s *seam) {
	st, nodes := s.open()
	node := s.master(st, nodes)
	old := s.useConnections(st, node, 5)
	st.Renew(node)
	if id := s.must(st, node, "CLIENT", "ID").(int64); id <= slices.Max(old) {
		s.Errorf("a command has connection %d, of %d", id, old)
	}
	l, e := s.listen(st, node, false)
	e.subscribe(l, "seam:renewed")
	left := func() []int64 {
		return slices.DeleteFunc(slices.Clone(old), func(id int64) bool {
			list, _ := s.must(st, node, "CLIENT", "LIST", "ID", id).(string)
			return !strings.Contains(list, "id=")
		})
	}
	if !soon(func() bool { return len(left()) == 0 }) {
		s.Errorf("connections %d are left, of %d", left(), old)
	}
	st.Renew("127.0.0.1:1") // which nobody knows
}

// useConnections has n connections used at one time, so that as many rest afterwards, and returns
// their ids.
func (s *seam) useConnections(st store.Store, node string, n int) []int64 {
	s.Helper()
	ids := make(chan int64, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			// for as many replicas as never are
			r := st.Do(s.ctx(), node, []store.Command{{"CLIENT", "ID"}, {"WAIT", 100, 300}})
			id, _ := r[0].Value.(int64)
			ids <- id
		})
	}
	all.Wait()
	close(ids)
	old := make([]int64, 0, n)
	for id := range ids {
		old = append(old, id)
	}
	return old
}

// After Renew, connections that fell silent are used no more. New ones work.
func seamRenewedSilent(s *seam) {
	st, p := s.openBehindProxy()
	old := s.useConnections(st, "", 5)
	p.Strand()
	began := time.Now()
	st.Renew("")
	if took := time.Since(began); took > patience/2 {
		s.Errorf("waited %v", took)
	}
	if id := s.must(st, "", "CLIENT", "ID").(int64); id <= slices.Max(old) {
		s.Errorf("a command has connection %d, of %d", id, old)
	}
	l, e := s.listen(st, "", false)
	e.subscribe(l, "seam:renewed")
}
