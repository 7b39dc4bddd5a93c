package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

// seamEvents notes what a Listener reports: "+a" subscribed, "-a" taken away, "!a NOPERM" refused,
// "a=x" a message, "closed".
type seamEvents struct {
	s *seam

	mu    sync.Mutex
	notes []string
	shut  bool
	why   error
}

func (s *seam) events() *seamEvents { return &seamEvents{s: s} }

func (e *seamEvents) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = append(e.notes, what)
}

func (e *seamEvents) Message(channel, payload string) { e.note(channel + "=" + payload) }
func (e *seamEvents) Subscribed(channel string)       { e.note("+" + channel) }
func (e *seamEvents) Unsubscribed(channel string)     { e.note("-" + channel) }

func (e *seamEvents) Refused(channel, line string) {
	word, _, _ := strings.Cut(line, " ")
	e.note("!" + channel + " " + word)
}

func (e *seamEvents) Closed(err error) {
	e.mu.Lock()
	e.why = err
	if e.shut {
		e.notes = append(e.notes, "closed after Close")
	}
	e.mu.Unlock()
	e.note("closed")
}

// expectNoClosed says that Close is called: nothing may be reported as closed from now on.
func (e *seamEvents) expectNoClosed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut = true
}

// count returns how often something was noted.
func (e *seamEvents) count(what string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, note := range e.notes {
		if note == what {
			n++
		}
	}
	return n
}

// waitFor waits until something was noted so often.
func (e *seamEvents) waitFor(what string, times int) {
	e.s.Helper()
	if !soon(func() bool { return e.count(what) >= times }) {
		e.s.Fatalf("never %d times %q: %q", times, what, e.notes)
	}
}

// subscribe subscribes, and waits until that is confirmed once more.
func (e *seamEvents) subscribe(l store.Listener, channel string) {
	e.s.Helper()
	before := e.count("+" + channel)
	e.s.noError(l.Subscribe(e.s.ctx(), channel))
	e.waitFor("+"+channel, before+1)
}

// listen opens a connection for messages, which the end of the test closes.
func (s *seam) listen(st store.Store, node string, sharded bool) (store.Listener, *seamEvents) {
	s.Helper()
	e := s.events()
	l, err := st.Listen(s.ctx(), node, sharded, e)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		e.expectNoClosed()
		l.Close()
		l.Close()
	})
	return l, e
}

// noError fails if a question could not be asked.
func (s *seam) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Each question is answered once, and messages of confirmed channels come, of others not.
func seamChannels(s *seam) {
	st, nodes := s.open()
	for i, node := range nodes {
		a, b, never := fmt.Sprint("seam:a", i), fmt.Sprint("seam:b", i), fmt.Sprint("seam:never", i)
		l, e := s.listen(st, node, false)
		s.noError(l.Subscribe(s.ctx(), a, b))
		e.waitFor("+"+a, 1)
		e.waitFor("+"+b, 1)
		e.subscribe(l, a)
		s.must(st, node, "PUBLISH", a, "x\x00\r\n")
		s.must(st, node, "PUBLISH", b, "y")
		e.waitFor(a+"=x\x00\r\n", 1)
		e.waitFor(b+"=y", 1)
		s.noError(l.Unsubscribe(s.ctx(), a, never))
		e.waitFor("-"+a, 1)
		e.waitFor("-"+never, 1)
		s.must(st, node, "PUBLISH", a, "z")
		s.must(st, node, "PUBLISH", b, "z")
		e.waitFor(b+"=z", 1)
		e.subscribe(l, a)
		if e.count(a+"=z") > 0 || e.count("+"+b) != 1 || e.count("closed") > 0 {
			s.Errorf("heard %q", e.notes)
		}
		l.Close()
	}
}

// A user that may subscribe, and nothing else, hears which channel is refused, keeps the others,
// and has a sign of life.
func seamRefused(s *seam) {
	operator, nodes := s.open()
	if nodes[len(nodes)-1] == "" {
		nodes = nodes[len(nodes)-1:] // where a client's own routing leads: a replica knows no user
	}
	for _, node := range nodes {
		s.must(operator, node, "ACL", "SETUSER", "seam", "reset", "on", ">pw", "resetchannels", "-@all",
			// clients ask these as they connect
			"+subscribe", "&seam:ok*", "+cluster|slots", "+cluster|shards", "+role")
	}
	st := s.backend.Open(s.T, "seam", "pw")
	met, err := st.Nodes(s.ctx())
	if err != nil {
		s.Fatal(err)
	}
	// A cluster may still be telling its nodes of its replicas, so two clients may differ.
	at := slices.IndexFunc(nodes, func(node string) bool { return node == "" || slices.Contains(met.Addresses, node) })
	if at < 0 {
		s.Fatalf("one client has met %q, and another %q", nodes, met.Addresses)
	}
	node := nodes[at]
	l, e := s.listen(st, node, false)
	s.noError(l.Subscribe(s.ctx(), "seam:no1"))
	e.waitFor("!seam:no1 NOPERM", 1)
	s.noError(l.Subscribe(s.ctx(), "seam:ok1", "seam:no2", "seam:ok2", "seam:no1"))
	for _, want := range []string{"+seam:ok1", "!seam:no2 NOPERM", "+seam:ok2"} {
		e.waitFor(want, 1)
	}
	e.waitFor("!seam:no1 NOPERM", 2)
	e.subscribe(l, "seam:ok1")
	s.noError(l.Unsubscribe(s.ctx(), "seam:ok2")) // which it may not, but an answer is an answer
	if !soon(func() bool { return e.count("-seam:ok2")+e.count("!seam:ok2 NOPERM") == 1 }) {
		s.Errorf("no answer: %q", e.notes)
	}
	s.must(operator, node, "PUBLISH", "seam:ok1", "x")
	e.waitFor("seam:ok1=x", 1)
	if e.count("closed") > 0 {
		s.Errorf("heard %q", e.notes)
	}
}

// A connection that is lost ends with a reason, and is not made again. A connection that Close ends
// has no reason.
func seamEnds(s *seam) {
	st, nodes := s.open()
	l, e := s.listen(st, nodes[0], false)
	e.subscribe(l, "seam:a")
	s.must(st, nodes[0], "CLIENT", "KILL", "TYPE", "pubsub")
	e.waitFor("closed", 1)
	if e.why == nil {
		s.Error("no reason")
	}
	if err := l.Subscribe(s.ctx(), "seam:b"); err == nil {
		s.Errorf("subscribed on a connection that has ended: %q", e.notes)
	}
	l.Close()
	second, e2 := s.listen(st, nodes[0], false)
	e2.subscribe(second, "seam:a")
	e2.expectNoClosed()
	second.Close()
	listens := func() bool {
		list, _ := s.must(st, nodes[0], "CLIENT", "LIST", "TYPE", "pubsub").(string)
		for line := range strings.Lines(list) { // sentinels listen at their master, too
			if strings.Contains(line, "id=") && !strings.Contains(line, "name=sentinel-") {
				return true
			}
		}
		return false
	}
	if !soon(func() bool { return !listens() }) {
		s.Error("still connected after Close")
	}
	if e.count("closed") != 1 || e.count("+seam:b") > 0 || e2.count("closed") > 0 {
		s.Errorf("heard %q and %q", e.notes, e2.notes)
	}
}

// A server that is silent shows as a question without an answer. Neither the question nor Close
// waits for it longer than the context says.
func seamSilent(s *seam) {
	st, p := s.openBehindProxy()
	l, e := s.listen(st, "", false)
	e.subscribe(l, "seam:a")
	p.Silence()
	defer p.Speak()
	began := time.Now()
	_ = l.Subscribe(s.within(300*time.Millisecond), "seam:b")
	e.expectNoClosed()
	l.Close()
	if took := time.Since(began); took > patience/2 {
		s.Errorf("took %v", took)
	}
	if e.count("+seam:b") > 0 {
		s.Error("confirmed by a silent server")
	}
}

// On a cluster a sharded channel is refused by a node that does not serve its slot, and taken
// away when the slot moves.
func seamMoves(s *seam) {
	st, _ := s.open()
	known, err := st.Nodes(s.ctx())
	if err != nil || !known.Cluster {
		s.Skip("no cluster")
	}
	const channel = "{seam:moves}"
	slot := s.must(st, known.Addresses[0], "CLUSTER", "KEYSLOT", channel).(int64)
	ids, masters := map[string]any{}, []string{}
	for _, node := range known.Addresses {
		ids[node] = s.must(st, node, "CLUSTER", "MYID")
		if role := s.must(st, node, "ROLE").([]any); role[0] == "master" {
			masters = append(masters, node)
		}
	}
	var owner, other string
	for _, node := range masters {
		switch r := st.Do(s.ctx(), node, []store.Command{{"SPUBLISH", channel, "x"}})[0]; {
		case strings.HasPrefix(r.Refused, "ERR"):
			s.Skip("no sharded channels")
		case r.Refused == "" && r.Err == nil:
			owner = node
		default:
			other = node
		}
	}
	if owner == "" || other == "" {
		s.Fatal(errors.New("no two masters"))
	}
	wrong, refused := s.listen(st, other, true)
	s.noError(wrong.Subscribe(s.ctx(), channel))
	refused.waitFor("!"+channel+" MOVED", 1)
	l, e := s.listen(st, owner, true)
	e.subscribe(l, channel)
	s.must(st, owner, "SPUBLISH", channel, "x")
	e.waitFor(channel+"=x", 1)
	move := func(to string) {
		for _, node := range []string{to, owner, other} {
			s.must(st, node, "CLUSTER", "SETSLOT", slot, "NODE", ids[to])
		}
	}
	move(other)
	e.waitFor("-"+channel, 1)
	s.noError(l.Subscribe(s.ctx(), channel))
	e.waitFor("!"+channel+" MOVED", 1)
	move(owner)
	if !soon(func() bool {
		s.noError(l.Subscribe(s.ctx(), channel))
		return e.count("+"+channel) >= 2
	}) {
		s.Errorf("not taken back: %q", e.notes)
	}
	if n := fmt.Sprint(e.count("-"+channel), e.count("closed")); n != "1 0" {
		s.Errorf("heard %q", e.notes)
	}
}
