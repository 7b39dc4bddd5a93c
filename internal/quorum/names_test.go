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
	"time"
)

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
			do(t, servers[0], "HSET", "q:{%quorum}:a", string(id(1)), grantedBefore())
			put(t, 1, c.value(), servers[1:]...)
			told := ""
			for found, err := range p.Names(t.Context(), "*") {
				switch {
				case err != nil:
					t.Error(err)
				case found.Name == "a": // the first master was read: what it learns of now, it does not tell
					put(t, 1, c.value(), servers[0])
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
	servers := start(t)
	prefix := `a*[b]?\`
	p := open(t, servers, Config{Prefix: prefix, Process: "p", Trust: true})
	want, first := map[string]int{}, map[string]string{}
	for n, name := range []string{"x", "order:1", "order:2", "a b\nc", "}{%", "*", "äö", "order:[3]", "y"} {
		for i, s := range servers {
			if n%7&(1<<i) == 0 && n%7 != 0 {
				continue
			}
			do(t, s, "HSET", prefix+":{%quorum}:"+name, string(id(1)), grantedBefore())
			if first[name] == "" {
				want[name], first[name] = 1, nodeName(i)
			}
		}
	}
	do(t, servers[0], "SET", prefix+":{%quorum}:odd", "theirs")
	do(t, servers[1], "HSET", prefix+":{%quorum}:odd", string(id(1)), holdValue("3mx", 7, 7))
	want["odd"], first["odd"] = 1, nodeName(0)
	doAll(t, servers, "HSET", prefix+":{%quorum}", "born", "1")
	doAll(t, servers, "ZADD", prefix+":{%quorum}+waits", "1", "x")
	doAll(t, servers, "HSET", `axbc\:{%quorum}:other`, "f", "v")
	doAll(t, servers, "HSET", prefix+":{native}", "f", "v")
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
	for _, c := range []struct {
		shut []int
		want string // of the names
	}{{nil, "a b c"}, {[]int{0}, "b c"}, {[]int{1}, "a c"}, {[]int{2}, "a b c"}, {[]int{0, 2}, "b c"}, {[]int{0, 1,
		2}, ""}} {
		t.Run(fmt.Sprint(c.shut), func(t *testing.T) {
			servers, all, p := startGated(t)
			for i, names := range []string{"a", "b c", "c"} {
				for name := range strings.FieldsSeq(names) {
					do(t, servers[i], "HSET", "q:{%quorum}:"+name, string(id(1)), grantedBefore())
				}
			}
			for _, i := range c.shut {
				all[i].shut()
			}
			names, by, err := listNames(t.Context(), p, "*")
			if got := strings.Join(slices.Sorted(maps.Keys(names)), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for name, times := range names {
				if times != 1 {
					t.Errorf("%s is told %d times, last by %s", name, times, by[name])
				}
			}
			var none *NoMajority
			if few := len(c.shut) < 2; few != (err == nil) || !few && !errors.As(err, &none) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A node that is asked what it knows, and fails then, is left out as well.
func TestNamesOfNodeThatFailsLaterAreToldAgain(t *testing.T) {
	servers, all, p := startGated(t)
	doAll(t, servers, "HSET", "q:{%quorum}:a", string(id(1)), grantedBefore())
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
	servers := start(t)
	put(t, 1, holdValue("3mx", 7, 7), servers...)
	for what, silent := range map[string]func(op string, n int) bool{
		"the time":         func(string, int) bool { return true },
		"its names":        func(_ string, n int) bool { return n == 2 },
		"what it has told": func(op string, _ int) bool { return op == "known" },
	} {
		all, behind := gates(servers)
		p := client(t, behind, true, id(0))
		asked, released := make(chan struct{}), make(chan struct{})
		n := 0
		all[0].set(func(op string) error {
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
		all[0].set(nil)
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
