package lockinfo

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

var at = time.Date(2026, 11, 24, 2, 14, 5, 123_000, time.UTC)

// hold is one of a state that began some minutes ago.
func hold(state State, token int64, minutes int) Hold {
	return Hold{State: state, Label: fmt.Sprint("l", token), Host: "a", PID: 12, Mode: ModeExclusive, Token: token,
		LastToken: token + 63,
		Since:     at.Add(-time.Duration(minutes) * time.Minute), Remaining: 13 * time.Second, TTL: 15 * time.Second,
		Renewed: at.Add(-2 * time.Second)}
}

func mutex(holds ...Hold) Info {
	return Info{Name: "order:42", Kind: KindMutex, At: at, Holders: len(holds), Holds: holds}
}

func masters(counting int) []Master {
	var out []Master
	for i := range 3 {
		m := Master{Node: fmt.Sprint("node ", i+1), Counts: i < counting}
		if !m.Counts {
			m.Why, m.Err = "unreachable", errors.New("holdfast: inspect at "+m.Node+": unreachable")
		}
		out = append(out, m)
	}
	return out
}

// infos are names in every state.
func infos() map[State][]Info {
	lateHold := hold(StateHeld, 9, 1)
	lateHold.Late = true
	permits := hold(StateHeld, 8, 1)
	permits.Mode, permits.Permits = ModePermits, 2
	return map[State][]Info{
		StateFree: {
			{Name: "n", At: at},
			{Name: "queue only \xff", Kind: KindMutex, At: at, Waiters: 1,
				Queue: []Waiter{{ID: "i", Place: 1, Label: "w", Mode: ModeExclusive, Since: at, Alive: AliveYes,
					Under: []string{"a\xff", "b"}}}},
			{Name: "s", Kind: KindSemaphore, At: at, Permits: 2,
				Queue: []Waiter{{ID: "i", Label: "w", Mode: ModePermits, Permits: 1, Alive: AliveNo, Kept: true}}},
			{Name: "q", At: at, Masters: masters(2)},
		},
		StateHeld: {
			mutex(hold(StateHeld, 1, 3)), mutex(lateHold),
			mutex(hold(StateMinHold, 1, 9), hold(StateBroken, 2, 8), hold(StateHandedOver, 3, 7),
				hold(StateHeld, 4, 6)),
			{Name: "s", Kind: KindSemaphore, Class: "pools", At: at, Holders: 1, Holds: []Hold{permits}, Permits: 5,
				Taken: 2},
			{Name: "q", Kind: KindElection, At: at, Holders: 1, Holds: []Hold{hold(StateHeld, 5, 1)},
				Masters: masters(1)},
		},
		StateHandedOver: {mutex(hold(StateBroken, 1, 2), hold(StateHandedOver, 2, 1))},
		StateBroken:     {mutex(hold(StateMinHold, 1, 2), hold(StateBroken, 2, 1))},
		StateMinHold:    {mutex(hold(StateMinHold, 1, 2))},
		StateSet:        {{Name: "l", Kind: KindLatch, At: at, Count: 3}},
		StateOpen:       {{Name: "l", Kind: KindLatch, At: at}},
		StateForeign: {{Name: "f", Foreign: "a list, and no lock"},
			{Name: "f", Kind: KindLatch, At: at, Foreign: "damaged"}},
		StateUnknown: {{Name: "q", At: at, Masters: masters(1)}},
	}
}

func TestState(t *testing.T) {
	for want, all := range infos() {
		for _, info := range all {
			if got := info.State(); got != want {
				t.Errorf("%+v: the state is %s, want %s", info, got, want)
			}
		}
	}
}

func TestHolderIsTheOldest(t *testing.T) {
	info := mutex(hold(StateHeld, 1, 1), hold(StateMinHold, 2, 5), hold(StateHeld, 3, 2), hold(StateHandedOver, 4, 9))
	if h, ok := info.Holder(); !ok || h.Token != 3 {
		t.Errorf("the holder is %+v", h)
	}
	if h, ok := mutex().Holder(); ok {
		t.Errorf("nobody holds, and the holder is %+v", h)
	}
}

// What is cut still says the same of its name.
func TestCutKeepsWhatDecides(t *testing.T) {
	lateHold := hold(StateHeld, 100, 1)
	lateHold.Late = true
	var many []Hold
	for i := range 50 {
		many = append(many, hold(StateMinHold, int64(i), 50-i))
	}
	crowd := mutex(append(append(slices.Clone(many), hold(StateHeld, 99, 2)), append(many, lateHold)...)...)
	crowd.Queue = make([]Waiter, 30)
	crowd.Waiters = 30
	all := infos()
	all[StateHeld] = append(all[StateHeld], crowd)
	for _, of := range all {
		for _, info := range of {
			holder, _ := info.Holder()
			for name, short := range map[string]Info{"cut": info.Cut(0, 3), "summary": info.Summary()} {
				kept, _ := short.Holder()
				if short.State() != info.State() || kept != holder || short.Late() != info.Late() ||
					short.Holders != info.Holders || short.Waiters != info.Waiters {
					t.Errorf("%s of %+v: %+v", name, info, short)
				}
				if len(short.Holds) > 2 || len(short.Queue) > 3 || name == "summary" && short.Queue != nil {
					t.Errorf("%s: %d holds and %d waiters are left", name, len(short.Holds), len(short.Queue))
				}
			}
		}
	}
	if cut := crowd.Cut(10, 20); len(cut.Holds) != 10 || len(cut.Queue) != 20 || len(crowd.Holds) != 102 {
		t.Errorf("%d holds and %d waiters are left, and %d holds of the whole", len(cut.Holds), len(cut.Queue),
			len(crowd.Holds))
	}
}

func TestCounting(t *testing.T) {
	for want, all := range map[[2]int][]Master{{0, 0}: nil, {1, 2}: masters(1), {3, 2}: masters(3)} {
		if counting, majority := Counting(all); counting != want[0] || majority != want[1] {
			t.Errorf("%d of %d", counting, majority)
		}
	}
}
