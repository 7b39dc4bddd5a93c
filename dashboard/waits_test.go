package dashboard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// pollOf returns a poll of names that are held by callers of their own. Each of the pairs says that
// the holder of the first name waits for the second.
func pollOf(pairs ...[2]string) map[string]*entry {
	infos := map[string]lockinfo.Info{}
	add := func(name string) lockinfo.Info {
		if info, known := infos[name]; known {
			return info
		}
		infos[name] = newHeld(name, name, int64(len(infos)+1))
		return infos[name]
	}
	for i, p := range pairs {
		add(p[0])
		waited := add(p[1])
		waited.Waiters++
		waited.WaitingSince = epoch.Add(-time.Duration(i) * time.Second)
		waited.Queue = append(waited.Queue,
			lockinfo.Waiter{Place: 1, Label: p[0], Host: "host-" + p[0], PID: 7, Under: []string{p[0]}})
		infos[p[1]] = waited
	}
	s := newSnapshot(nil, 1)
	for _, info := range infos {
		s.addName(info)
	}
	return s.names
}

// Why a name is waited for has its whole chain, of which a page gets the first links and the root.
func TestReasonsAreBounded(t *testing.T) {
	const names = 5000
	var pairs [][2]string
	for i := range names - 1 {
		pairs = append(pairs, [2]string{fmt.Sprintf("n%04d", i), fmt.Sprintf("n%04d", i+1)})
	}
	chain := pollOf(pairs...)
	got := reasonsOf(chain, chain["n0001"].info)
	if len(got.Links) != maxLinks || got.Omitted != names-1-maxLinks || got.Cyclic {
		t.Errorf("%d links, %d omitted, cyclic %v", len(got.Links), got.Omitted, got.Cyclic)
	}
	if len(got.Roots) != 1 || got.Roots[0].Name != "n4999" {
		t.Errorf("the roots are %+v", got.Roots)
	}
}

// The picture of many waits has the cycle among them, and says how many names it lacks.
func TestWaitMapIsBounded(t *testing.T) {
	var pairs [][2]string
	for i := range 3000 {
		pairs = append(pairs, [2]string{fmt.Sprintf("a%04d", i), fmt.Sprintf("b%04d", i)})
		pairs = append(pairs, [2]string{fmt.Sprintf("b%04d", i), fmt.Sprintf("c%04d", i)})
	}
	pairs = append([][2]string{{"x", "y"}, {"y", "x"}}, pairs...)
	got := newWaitMap(pollOf(pairs...))
	if len(got.Names) != maxDrawn || !strings.Contains("xy", got.Names[0].Name) || got.Omitted != 6002-maxDrawn {
		t.Errorf("%d names, %d omitted", len(got.Names), got.Omitted)
	}
	cycle := 0
	for _, e := range got.Edges {
		if e.Cycle {
			cycle++
		}
		if e.Perhaps || got.Names[e.From].Name != e.Label {
			t.Errorf("the edge is %+v", e)
		}
	}
	if cycle != 2 || len(got.Edges) < maxDrawn/3 {
		t.Errorf("%d edges, %d of a cycle", len(got.Edges), cycle)
	}
}

// A page gets why a name is waited for, the graph, and possible deadlocks, of the last poll.
func TestWaitsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		for _, e := range pollOf([2]string{"x", "y"}, [2]string{"y", "x"}) {
			f.setNames(e.info)
		}
		h := newHandler(f, nil)
		openStream(t, h).next(t)
		var got struct {
			Why      reasons             `json:"why"`
			Names    []lockinfo.Info     `json:"names"`
			Edges    []waitEdge          `json:"edges"`
			Possible []lockinfo.Deadlock `json:"possible"`
		}
		for _, path := range []string{"/lock?name=x", "/waits", "/deadlocks"} {
			if err := json.Unmarshal(get(h, path).Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
		}
		if !got.Why.Cyclic || len(got.Why.Links) != 2 || len(got.Names) != 2 || len(got.Edges) != 2 ||
			len(got.Possible) != 1 {
			t.Errorf("got %+v", got)
		}
	})
}
