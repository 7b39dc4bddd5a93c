package dashboard

import (
	"encoding/json"
	"fmt"
	"slices"
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
	s.finish()
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

// A row says what its holders wait for, and whether it is a root. What that takes is bounded.
func TestRowsTellWaits(t *testing.T) {
	chain := pollOf([2]string{"x", "y"}, [2]string{"y", "z"})
	if z := chain["z"]; len(z.waits) != 0 || !z.root || !strings.Contains(string(z.row), `"root":true`) {
		t.Errorf("the root is %s", z.row)
	}
	if y := chain["y"]; y.root || !slices.Equal(y.waits, []wait{{ID: chain["z"].id, Label: "y"}}) {
		t.Errorf("behind it is %s", y.row)
	}
	if x := chain["x"]; x.root || len(x.waits) != 0 {
		t.Errorf("nobody waits for %s", x.row)
	}

	const names = 1000 // of one process that waits for all of them
	s := newSnapshot(nil, 1)
	for i := range names {
		info := newHeld(fmt.Sprint(i), "A", int64(i+1))
		info.Waiters, info.Queue = 1, []lockinfo.Waiter{{Place: 1, Host: info.Holds[0].Host, PID: info.Holds[0].PID}}
		s.addName(info)
	}
	s.finish()
	told := 0
	for _, e := range s.names {
		told += len(e.waits)
	}
	if told == 0 || told > maxEach*(1+maxWaits/names) {
		t.Errorf("%d waits are told", told)
	}
}

// A page gets why a name is waited for, and possible deadlocks, of the last poll.
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
			Possible []lockinfo.Deadlock `json:"possible"`
		}
		for _, path := range []string{"/lock?name=x", "/deadlocks"} {
			if err := json.Unmarshal(get(h, path).Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
		}
		if !got.Why.Cyclic || len(got.Why.Links) != 2 || len(got.Possible) != 1 {
			t.Errorf("got %+v", got)
		}
	})
}
