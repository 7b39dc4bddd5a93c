package lockinfo

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func events(changes []Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, string(c.Event))
	}
	return strings.Join(out, ", ")
}

// Each event when it is so, and at no other change.
func TestCompare(t *testing.T) {
	with := func(change func(*Info)) Info {
		info := mutex(hold(StateHeld, 1, 1))
		change(&info)
		return info
	}
	a := with(func(*Info) {})
	late := with(func(i *Info) { i.Holds[0].Late = true })
	broken := mutex(hold(StateBroken, 1, 1))
	waiting := Info{Name: a.Name, Kind: KindMutex, At: at, Waiters: 2}
	latch := func(count int64) Info { return Info{Name: a.Name, Kind: KindLatch, At: at, Count: count} }
	foreign := Info{Name: a.Name, Foreign: "a list"}
	free := Info{Name: a.Name, At: at}
	few := Info{Name: a.Name, At: at, Masters: masters(1)}
	readers := with(func(i *Info) { i.Holders = 2 })
	for name, c := range map[string]struct {
		before, after Info
		want          string
	}{
		"new":                 {Info{}, a, "held"},
		"new, with a queue":   {Info{}, with(func(i *Info) { i.Waiters = 2 }), "held, waiting"},
		"new, a queue alone":  {free, waiting, "waiting"},
		"new, broken":         {Info{}, broken, "ended"},
		"new, in a min hold":  {free, mutex(hold(StateMinHold, 1, 1)), "ended"},
		"the same":            {a, a, ""},
		"waits":               {a, with(func(i *Info) { i.Waiters = 2 }), "waiting"},
		"passed on":           {a, mutex(hold(StateHeld, 2, 0)), "held"},
		"handed over":         {a, mutex(hold(StateHandedOver, 2, 0)), "held"},
		"taken up":            {mutex(hold(StateHandedOver, 1, 1)), a, ""},
		"renewed in time":     {a, with(func(i *Info) { i.Holds[0].Remaining += time.Second }), ""},
		"broken":              {a, broken, "ended"},
		"still broken":        {broken, broken, ""},
		"broken again":        {broken, mutex(hold(StateBroken, 2, 0)), "ended"},
		"held after a break":  {broken, mutex(hold(StateHeld, 2, 0)), "held"},
		"ended with a queue":  {with(func(i *Info) { i.Waiters = 2 }), waiting, "ended"},
		"freed":               {a, Info{}, "freed"},
		"freed, inspected":    {broken, free, "freed"},
		"nothing":             {Info{}, free, ""},
		"late":                {a, late, "late"},
		"late from the first": {Info{}, late, "held"},
		"renewed":             {late, a, "renewed"},
		"more readers":        {a, readers, "holders"},
		"fewer readers":       {readers, a, "holders"},
		"set":                 {Info{}, latch(3), "counted"},
		"counted":             {latch(3), latch(2), "counted"},
		"opened":              {latch(1), latch(0), "counted"},
		"still open":          {latch(0), latch(0), ""},
		"not ours":            {a, foreign, "foreign, ended"},
		"still not ours":      {foreign, foreign, ""},
		"too few masters":     {a, few, "ended"},
		"masters are back":    {few, a, "held"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compare(c.before, c.after)
			if events(got) != c.want {
				t.Errorf("got %q, want %q", events(got), c.want)
			}
			if short := Compare(c.before.Summary(), c.after.Summary()); events(short) != c.want {
				t.Errorf("of summaries got %q, want %q", events(short), c.want)
			}
			for _, change := range got {
				if change.After.Name != a.Name || c.before.Kind != "" && change.Before.Name != a.Name {
					t.Errorf("got %+v", change)
				}
			}
		})
	}
}

func TestChanges(t *testing.T) {
	named := func(name string, token int64, later time.Duration) Info {
		info := mutex(hold(StateHeld, token, 1))
		info.Name, info.At = name, at.Add(later)
		return info
	}
	before := []Info{named("same", 1, 0), named("gone", 2, 0), named("gone late", 3, time.Hour), named("passed", 4, 0)}
	after := []Info{named("same", 1, time.Second), named("passed", 5, time.Second), named("new", 6, 0),
		named("new", 6, 0)}
	var got []string
	for _, c := range Changes(before, after) {
		got = append(got, strings.Join(
			[]string{string(c.Event), c.After.Name, c.After.At.Sub(at).String(), string(c.After.State())}, " "))
	}
	want := "held passed 1s held; held new 0s held; freed gone 1s free; freed gone late 1h0m0s free"
	if joined := strings.Join(got, "; "); joined != want {
		t.Errorf("got  %s\nwant %s", joined, want)
	}
}

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }
