package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// mustInspect tells what all masters say of a name, all of which live.
func mustInspect(t *testing.T, p *Protocol, name string) (in protocol.Inspection) {
	t.Helper()
	until(t, "all answer in time", func() bool { // the machine may stand still for longer than Inspect lasts
		var err error
		in, err = p.Inspect(t.Context(), name, protocol.Page{Holds: 100, Queue: 100})
		return err == nil && !slices.ContainsFunc(in.Nodes,
			func(n protocol.Node) bool { return errors.Is(n.Err, errSilent) })
	})
	return in
}

// The verdict is what a majority of all nodes knows. A node that does not answer may know it too. A
// value of another program at the key is told of each node, and of the name where no majority can
// be (trap 28).
func TestInspectTellsByMajority(t *testing.T) {
	eachArrangement(t, map[string]string{
		"held 7":                 "hhh hh- hhd h-d hdd thh hhr hrd hhd-- rrhhd hhhrr fhh",
		"held 0":                 "tth ttd",
		"":                       "h-- --- --d -dd r-- hh--- k-- fh-",
		"broken by by 7":         "hrr rrr rd- r-h rrhh-",
		"broken by by 7, held 8": "bbh",
		"foreign":                "ffh fff oho",
	}, func(t *testing.T, masters, want string) {
		_, p := arrangeMasters(t, masters, "3mx")
		in := mustInspect(t, p, "x")
		var told []string
		if in.Foreign != nil {
			told = append(told, "foreign")
		}
		for _, h := range in.Holds {
			text := "held"
			if h.State == protocol.HoldBroken {
				text = "broken by " + h.By
			}
			told = append(told, fmt.Sprint(text, " ", h.Token))
			if left := time.Duration(h.Until-in.Server) * time.Microsecond; left <= 0 || left > time.Minute {
				t.Errorf("%s ends in %v", text, left)
			}
		}
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if in.HoldCount != len(in.Holds) || in.QueueCount != 0 || len(in.Nodes) != len(masters) {
			t.Errorf("got %+v", in)
		}
		for i, n := range in.Nodes {
			knows := 0
			switch masters[i] {
			case 'h', 't', 'r':
				knows = 1
			case 'b':
				knows = 2
			}
			dead, other := masters[i] == 'd', n.Inspection.Foreign
			if foreign := strings.ContainsRune("fok", rune(masters[i])); foreign != (other != nil) ||
				foreign && (other.Node != nodeName(i) || other.Key != stateKey || other.Name != "x") {
				t.Errorf("master %d (%c): foreign: %+v", i+1, masters[i], other)
			}
			if (n.Err != nil) != dead || n.Counts == dead || len(n.Inspection.Holds) != knows ||
				n.Name != nodeName(i) {
				t.Errorf("master %d (%c): %+v", i+1, masters[i], n)
			}
		}
	})
}

// A hold ends when fewer than a majority keep it.
func TestInspectUntilIsEndOfMajority(t *testing.T) {
	servers, p := arrangeMasters(t, "---", "3mx")
	now := time.Now()
	for i, left := range []time.Duration{time.Hour, 2 * time.Minute, 20 * time.Minute} {
		storeHold(t, 1, holdValueUntil("3rs", now.Add(left), 7, 9), servers[i])
	}
	in := mustInspect(t, p, "x")
	if len(in.Holds) != 1 || in.Kind != protocol.ReadWrite {
		t.Fatalf("got %+v", in)
	}
	h := in.Holds[0]
	left := time.Duration(h.Until-in.Server) * time.Microsecond
	if left <= 15*time.Minute || left > 20*time.Minute || h.Token != 7 || h.Block != 3 || !h.Shared {
		t.Errorf("got %+v, for %v", h, left)
	}
}

// A look changes nothing, wherever it finds what others would have to change: at masters that are
// new, where holds are over, and where a snapshot has come back (trap 44).
func TestInspectChangesNothing(t *testing.T) {
	kept := func(s wire.Store) string {
		out := ""
		for _, key := range []string{factsKey, stateKey, waitersKey, watchersKey} {
			dump, _ := command(t, s, "DUMP", key).(string)
			out += key + "=" + dump + ";"
		}
		return out
	}
	servers := startMasters(t)
	stranger := openProtocol(t, servers, Config{Process: "stranger", MaxTTL: time.Second})
	for i, n := range mustInspect(t, stranger, "x").Nodes {
		if n.Counts || n.Err != nil || !strings.Contains(n.Why, "nobody has used it yet") ||
			command(t, servers[i], "DBSIZE") != int64(0) {
			t.Errorf("%s: %+v, and keeps %v keys", n.Name, n, command(t, servers[i], "DBSIZE"))
		}
	}
	warmUp(t, foundQuorum(t, servers))
	storeHold(t, 1, holdValueUntil("3mx", time.Now().Add(-time.Second), 7, 7), servers...)
	restartMaster(t, servers[0], "q")
	var before []string
	for _, s := range servers {
		before = append(before, kept(s))
	}
	for range 2 { // also once the script is known
		in := mustInspect(t, stranger, "x")
		if len(in.Holds) > 0 || in.HoldCount > 0 || in.Kind != 0 {
			t.Errorf("what is over is told: %+v", in)
		}
		for i, n := range in.Nodes {
			if n.Counts != (i > 0) || i == 0 && !strings.Contains(n.Why, "it was restarted") {
				t.Errorf("%s: %+v", n.Name, n)
			}
			if kept(servers[i]) != before[i] {
				t.Errorf("%s was changed", n.Name)
			}
		}
	}
	// the first that may change something sees the restart
	if nodes := mustStatus(t, stranger); nodes[0].Counts || kept(servers[0]) == before[0] {
		t.Errorf("after the look: %v", nodes)
	}
	for _, n := range mustInspect(t, stranger, "x").Nodes {
		if strings.Contains(n.Why, "it was restarted") {
			t.Errorf("%s: %s", n.Name, n.Why)
		}
	}
}

// A node whose clock was set forward does not count. All nodes ahead by the same say that our own
// clock stood still.
func TestInspectNodeSetForwardDoesNotCount(t *testing.T) {
	for _, forward := range []int{0, 1, 3} {
		_, all, p := startGated(t)
		warmUp(t, p)
		for _, g := range all[:forward] {
			g.forward(time.Hour)
		}
		for i, n := range mustInspect(t, p, "x").Nodes {
			if n.Counts != (forward != 1 || i > 0) {
				t.Errorf("%d were set forward: %s: counts %v, %s", forward, n.Name, n.Counts, n.Why)
			}
		}
	}
}

// A node that is stopped is told as such. It holds the rest up for no longer than a request.
func TestInspectWithSilentNodesEndsInTime(t *testing.T) {
	for _, stopped := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now().UnixMicro()
			text := "I" + wire.Digits16(now) + wire.Digits16(now-1e9) + nameless + "1" + wire.Digits16(0) + "11000|0|0:"
			var stores []wire.Store
			for i := range 3 {
				stores = append(stores, fake(func(ctx context.Context, _ wire.Request) wire.Reply {
					if i < stopped {
						return staySilent(ctx)
					}
					return wire.Reply{Value: text}
				}))
			}
			p := openProtocol(t, stores, Config{Prefix: usual, Process: "p", MaxTTL: time.Second})
			began := time.Now()
			in, err := p.Inspect(t.Context(), "x", protocol.Page{Holds: 1})
			if long := time.Since(began); long > inspectTimeout {
				t.Errorf("it took %v", long)
			}
			nodes := in.Nodes
			if stopped == 3 {
				nodes = noMajorityOf(t, err).Nodes
			}
			for i, n := range nodes {
				var failure *protocol.Failure
				if errors.As(n.Err, &failure) != (i < stopped) || failure != nil && failure.Node != nodeName(i) {
					t.Errorf("%s: %+v", n.Name, n)
				}
			}
		})
	}
}

// No more is told than was asked for, the oldest first, and all are counted.
func TestInspectTellsOnePage(t *testing.T) {
	servers, p := arrangeMasters(t, "---", "3rs")
	for n := 1; n <= 5; n++ {
		storeHold(t, n, holdValue("3rs", int64(100-n), int64(100-n)), servers...)
	}
	for page := range 7 {
		in, err := p.Inspect(t.Context(), "x", protocol.Page{Holds: page})
		fatal.If(t, err)
		if in.HoldCount != 5 || len(in.Holds) != min(page, 5) || page > 0 && in.Holds[0].ID != ticketID(5) ||
			len(in.Nodes[0].Inspection.Holds) != min(page, 5) {
			t.Errorf("a page of %d: %+v", page, in)
		}
	}
}

// lookAgain looks, without a watcher, until a majority answers in the second that a look has, in
// which this machine may stand still.
func lookAgain(t *testing.T, r *resource) (standing protocol.Standing) {
	t.Helper()
	until(t, "a majority answers in time", func() bool {
		var err error
		if standing, err = r.Look(t.Context(), nil); err != nil && !isPassing(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return standing
}

// A look tells the hold whose token a majority accepted, whichever nodes answer first, and of one
// that is away it is not known what it accepted. Remainders are nobody's; beside them the holder is
// named.
func TestLookTellsByMajority(t *testing.T) {
	party := protocol.Party{Owner: holdField(1), Unnamed: true}
	beside := protocol.Party{Owner: holdField(2), Label: "by", Unnamed: true}
	eachArrangement(t, map[protocol.Standing]string{
		{Holder: party, Token: 7, Since: 7, Holders: 1}:  "hhh ehh thh -hh hhd ehd htd hhb",
		{Holder: beside, Token: 8, Since: 8, Holders: 1}: "bbh bbd bbr",
		{Holders: 1}: "rrr rrh rr-",
		{}:           "eht htt ttt h-- r--",
	}, func(t *testing.T, masters string, want protocol.Standing) {
		_, p := arrangeMasters(t, masters, "3mx")
		for range 5 {
			var got protocol.Standing
			until(t, "all that live answer in time", func() bool {
				began := time.Now()
				got = lookAgain(t, mutexOf(p))
				return time.Since(began) < time.Second
			})
			if got.Server = 0; got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
	})
}

// When a majority keeps something else under the name, every request says so, in whatever order
// nodes answer, and waits for nothing more.
func TestForeignKeyAtMajorityIsTold(t *testing.T) {
	for _, masters := range []string{"kkk", "-kk", "kdk", "fff", "ff-", "fdf"} {
		t.Run(masters, func(t *testing.T) {
			_, p := arrangeMasters(t, masters, "3rx")
			for op, f := range requestsOf(t, writerOf(p, "")) {
				if op == "renew" && masters[0] != 'f' {
					continue // it looks for its own hold alone, and that is gone
				}
				var foreign *protocol.Foreign
				var err error
				// where one is down, no error waits for them for long
				until(t, "those that live answer in time", func() bool {
					err = f()
					return !isPassing(err)
				})
				if !errors.As(err, &foreign) || foreign.Found == "" {
					t.Errorf("%s: got %v", op, err)
				}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.waits) != 0 {
				t.Errorf("%d wait", len(p.waits))
			}
		})
	}
}

// requestsOf returns all requests about a name that read its state. Each returns its error.
func requestsOf(t *testing.T, r *resource) map[string]func() error {
	return map[string]func() error{
		"ask":         func() error { _, err := r.Ask(t.Context(), newAsk(3)); return err },
		"ask to wait": func() error { _, err := r.Ask(t.Context(), newJoin(1)); return err },
		"break": func() error {
			_, err := r.p.Break(t.Context(), "x", protocol.Break{Kind: r.spec.Kind, Token: 7, By: "breaker"})
			return err
		},
		"downgrade": func() error { _, err := r.Downgrade(t.Context(), newAsk(1)); return err },
		"look":      func() error { _, err := r.Look(t.Context(), &protocol.Ticket{ID: ticketID(5)}); return err },
		"free":      func() error { _, err := tryFree(t, r, 1, 0); return err },
		"renew":     func() error { return renewOnce(t, r.p, renewalOf(r, 1, 7)).Err },
	}
}

// listNames counts how often each name is told, and returns what the stream ends with.
func listNames(ctx context.Context, p *Protocol, pattern string) (names map[string]int, by map[string]string,
	end error) {
	names, by = map[string]int{}, map[string]string{}
	for found, err := range p.Names(ctx, pattern) {
		if err != nil {
			end = err
			continue
		}
		names[found.Name]++
		by[found.Name] = found.Node
	}
	return names, by, end
}

// grantedBefore returns what a master keeps of a hold that was granted some time ago.
func grantedBefore() string {
	return strings.Replace(holdValue("3mx", 7, 7), "60000:", "90000:", 1)
}

// A name that a master learns of after it was read is told by the next that knows it, although the
// first knows it as well by then.
func TestNamesLearnedMeanwhileAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		value func() string
		told  string
	}{"now": {func() string { return holdValue("3mx", 7, 7) }, nodeName(1)}, "before": {grantedBefore, ""}} {
		t.Run(name, func(t *testing.T) {
			servers, p := startClient(t)
			command(t, servers[0], "HSET", "q:{%quorum}:a", holdField(1), grantedBefore())
			storeHold(t, 1, c.value(), servers[1:]...)
			told := ""
			for found, err := range p.Names(t.Context(), "*") {
				switch {
				case err != nil:
					t.Error(err)
				case found.Name == "a": // the first master was read: what it learns of now, it does not tell
					storeHold(t, 1, c.value(), servers[0])
				default: // in one millisecond with its beginning, a name may be told again
					told = cmp.Or(told, found.Node)
				}
			}
			if told != c.told {
				t.Errorf("told by %q, want %q", told, c.told)
			}
		})
	}
}

// Each name is told once, by the first node that knows it, also one whose key is of another type.
// The keys beside are of others: keys of this quorum that are no names, and other prefixes, also
// where the prefix reads as a pattern (trap 27).
func TestNamesTellsEachNameOnce(t *testing.T) {
	servers := startMasters(t)
	prefix := `a*[b]?\`
	p := openProtocol(t, servers, Config{Prefix: prefix, Process: "p", Trust: true})
	want, first := map[string]int{}, map[string]string{}
	for n, name := range []string{"x", "order:1", "order:2", "a b\nc", "}{%", "*", "äö", "order:[3]", "y"} {
		for i, s := range servers {
			if n%7&(1<<i) == 0 && n%7 != 0 {
				continue
			}
			command(t, s, "HSET", prefix+":{%quorum}:"+name, holdField(1), grantedBefore())
			if first[name] == "" {
				want[name], first[name] = 1, nodeName(i)
			}
		}
	}
	command(t, servers[0], "SET", prefix+":{%quorum}:odd", "theirs")
	command(t, servers[1], "HSET", prefix+":{%quorum}:odd", holdField(1), holdValue("3mx", 7, 7))
	want["odd"], first["odd"] = 1, nodeName(0)
	commandAll(t, servers, "HSET", prefix+":{%quorum}", "born", "1")
	commandAll(t, servers, "ZADD", prefix+":{%quorum}+waits", "1", "x")
	commandAll(t, servers, "HSET", `axbc\:{%quorum}:other`, "f", "v")
	commandAll(t, servers, "HSET", prefix+":{native}", "f", "v")
	names, by, err := listNames(t.Context(), p, "*")
	if err != nil || !maps.Equal(names, want) || !maps.Equal(by, first) {
		t.Errorf("got %v by %v, %v; want %v by %v", names, by, err, want, first)
	}
	if names, _, err := listNames(t.Context(), p, "order:?"); err != nil ||
		!slices.Equal(slices.Sorted(maps.Keys(names)), []string{"order:1", "order:2"}) {
		t.Errorf("got %v, %v", names, err)
	}
}

// A node that fails is left out, and the others tell what they know. Where no majority answers the
// error says so.
func TestNamesWithoutMinorityTellsTheRest(t *testing.T) {
	for shut, want := range map[string]string{"": "a b c", "0": "b c", "1": "a c", "2": "a b c", "02": "b c",
		"012": ""} {
		t.Run("without "+shut, func(t *testing.T) {
			servers, all, p := startGated(t)
			for i, names := range []string{"a", "b c", "c"} {
				for name := range strings.FieldsSeq(names) {
					command(t, servers[i], "HSET", "q:{%quorum}:"+name, holdField(1), grantedBefore())
				}
			}
			for _, digit := range shut {
				all[digit-'0'].shut()
			}
			names, by, err := listNames(t.Context(), p, "*")
			if got := strings.Join(slices.Sorted(maps.Keys(names)), " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			for name, times := range names {
				if times != 1 {
					t.Errorf("%s is told %d times, last by %s", name, times, by[name])
				}
			}
			if few := len(shut) < 2; few != (err == nil) || !few && !errors.As(err, new(*NoMajority)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A node that is asked what it knows, and fails then, is left out as well.
func TestNamesOfNodeThatFailsLaterAreToldAgain(t *testing.T) {
	servers, all, p := startGated(t)
	commandAll(t, servers, "HSET", "q:{%quorum}:a", holdField(1), grantedBefore())
	told := 0
	var end error
	for found, err := range p.Names(t.Context(), "*") {
		if end = err; err == nil {
			told++
			if found.Name != "a" {
				t.Errorf("got %+v", found)
			}
			all[0].shut() // it has told all
		}
	}
	if told != 2 || end != nil {
		t.Errorf("told %d times, %v", told, end)
	}
}

// The end of ctx ends a list of names at once, whatever a node is being asked for.
func TestNamesEndWithContext(t *testing.T) {
	servers := startMasters(t)
	storeHold(t, 1, holdValue("3mx", 7, 7), servers...)
	for what, silent := range map[string]func(op string, n int) bool{
		"the time":         func(string, int) bool { return true },
		"its names":        func(_ string, n int) bool { return n == 2 },
		"what it has told": func(op string, _ int) bool { return op == "known" },
	} {
		all, behind := gates(servers)
		p := newClient(t, behind, ticketID(0))
		asked, released := make(chan struct{}), make(chan struct{})
		n := 0
		all[0].atRequest(func(op string) error {
			if n++; silent(op, n) {
				close(asked)
				<-released
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, _, err := listNames(ctx, p, "*")
			ended <- err
		}()
		<-asked
		all[0].atRequest(nil)
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", what, err)
			}
		case <-time.After(enough):
			t.Errorf("%s: it goes on", what)
			defer func() { <-ended }()
		}
		close(released)
	}
}
