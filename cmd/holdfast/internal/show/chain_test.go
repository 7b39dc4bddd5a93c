package show

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// docs/command.md shows a chain as it is printed.
func TestChainIsThatOfThePage(t *testing.T) {
	ago := func(d time.Duration) time.Time { return at.Add(-d) }
	const billed = 6*time.Minute + 8*time.Second
	c := lockinfo.NewChain(lockinfo.Info{
		Name: "order:42", At: at, Holders: 1, Waiters: 3, WaitingSince: ago(6*time.Minute + 2*time.Second),
		Holds: []lockinfo.Hold{{State: lockinfo.StateHeld, Label: "billing@web-1", Host: "web-1", PID: 4711, Token: 812,
			Since: ago(billed + 2*time.Second)}},
	}, []lockinfo.Info{{
		Name: "stock:7", At: at, Holders: 1, Waiters: 1,
		Holds: []lockinfo.Hold{{State: lockinfo.StateHeld, Label: "import@db-2", Host: "db-2", PID: 99, Token: 97,
			Since: ago(22*time.Minute + 10*time.Second), Late: true, Renewed: ago(12 * time.Second)}},
		Queue: []lockinfo.Waiter{{Place: 1, Under: []string{"order:42"}, Since: ago(billed)}},
	}})
	var out strings.Builder
	fatal.If(t, (Page{Out: &out}).Chain(c))
	page, err := os.ReadFile("../../../../docs/command.md")
	fatal.If(t, err)
	if block := "```text\n" + out.String() + "```\n"; !strings.Contains(string(page), block) {
		t.Errorf("docs/command.md does not have\n%s", block)
	}
}

// Each kind of hold and each end of a wait has its words.
func TestChainSays(t *testing.T) {
	hold := lockinfo.Hold{State: lockinfo.StateHeld, Label: "l\x1b", Token: 1}
	with := func(change func(*lockinfo.Hold)) lockinfo.Hold { h := hold; change(&h); return h }
	for want, h := range map[string]lockinfo.Hold{
		`held by "l\x1b", token 1`: hold,
		`broken by ops, and kept from others for 8.0s until "l\x1b" has stopped`: with(func(h *lockinfo.Hold) {
			h.State, h.By, h.Remaining = lockinfo.StateBroken, "ops", 8*time.Second
		}),
		"released, and kept from others by its min hold for 8.0s": with(func(h *lockinfo.Hold) {
			h.State, h.Remaining = lockinfo.StateMinHold, 8*time.Second
		}),
		`handed over to "l\x1b", which has not taken it up, token 1`: with(func(h *lockinfo.Hold) {
			h.State = lockinfo.StateHandedOver
		}),
	} {
		if got := holdText(lockinfo.Link{At: at, Hold: h}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for want, w := range map[string]lockinfo.Wait{
		"waits for n (told elsewhere)":              {Name: "n", Holds: lockinfo.LocationElsewhere},
		`perhaps waits for "\x1b" (above: a cycle)`: {Name: "\x1b", Perhaps: true, Holds: lockinfo.LocationAbove},
	} {
		if got := waitText(w, at); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for want, info := range map[string]lockinfo.Info{
		"nobody waits": {}, "1 waits, for 2.0s": {Waiters: 1, At: at, WaitingSince: at.Add(-2 * time.Second)},
		"a quorum has no queue, so nobody knows who waits": {Masters: []lockinfo.Master{{}}},
	} {
		if got := waitersText(info); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
