package dashboard_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/states"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// frozen returns an embedded server whose clock stands still.
func (b *viewer) frozen() *miniredis.Miniredis {
	mini := miniredis.RunT(b.T)
	mini.SetTime(time.Now())
	return mini
}

// command sends commands of an operator.
func (b *viewer) command(mini *miniredis.Miniredis) func(args ...any) {
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	b.Cleanup(func() { _ = rdb.Close() })
	return func(args ...any) {
		b.Helper()
		if err := rdb.Do(b.Context(), args...).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

// whole fails the test if the page shows a value that is not there.
func (b *viewer) whole(where string) {
	b.Helper()
	const bad = `(document.body.innerText.match(/.*(undefined|\bNaN\b|\bnull\b|\[object|Invalid Date).*/g) ?? []).join("; ")`
	if got := b.text(bad); got != "" {
		b.Errorf("%s: the page shows %s", where, got)
	}
}

// each opens each name, the process of each holder, and all other panels.
func (b *viewer) each(made map[string]lockinfo.State) {
	b.Helper()
	for _, name := range slices.Sorted(maps.Keys(made)) {
		b.goTo("lock=" + url.PathEscape(name))
		b.shows("Seen since this page was opened")
		b.until(fmt.Sprintf(`document.querySelector("#panel p span").textContent === %q`, made[name]))
		b.whole(name)
	}
	for _, panel := range []string{"", "changes", "servers", "deadlocks"} {
		b.goTo(panel)
		b.whole("#" + panel)
	}
	b.run(chromedp.Evaluate(`location.hash = ""; [...document.querySelectorAll("tr.row button")][0].click()`, nil))
}

// Of names in every state, and of every change, the page shows nothing that is not there.
func TestEveryStateIsShownWhole(t *testing.T) {
	b := newViewer(t)
	mini := b.frozen()
	client := func(config *holdfast.Config, dial states.Dial) *holdfast.Client {
		return harness.Locker(t, mini.Addr(), config, func(o *redis.Options) { o.Dialer, o.DialerRetries = dial, 1 })
	}
	b.serve(client(&holdfast.Config{Label: "operator"}, nil))
	b.open("")
	now := time.Now()
	command := b.command(mini)
	made := states.Make(t, states.Server{Client: client, Command: command,
		Ahead: func(step time.Duration) { now = now.Add(step); mini.SetTime(now) }})
	b.until(fmt.Sprintf("%s === %d", rows, len(made)))
	b.each(made)
	for name, text := range map[string]string{"kept place of a semaphore": "0 of 2 permits taken",
		"open": "0 to count down", "permits": "3 of 5 permits taken"} {
		b.goTo("lock=" + url.PathEscape(name))
		b.shows(text)
	}
	b.open("")
	command("FLUSHALL")
	b.goTo("changes")
	b.shows("freed")
	b.whole("freed")
	b.right()
}

func TestEveryStateOfAQuorumIsShownWhole(t *testing.T) {
	b := newViewer(t)
	masters := []*miniredis.Miniredis{b.frozen(), b.frozen(), b.frozen()}
	client := func(label string) *holdfast.Client {
		config := holdfast.Config{Label: label, TrustNewNodes: true, ReleaseTimeout: 100 * time.Millisecond}
		return b.quorum(config, masters[0].Addr(), masters[1].Addr(), masters[2].Addr())
	}
	b.serve(client("operator"))
	b.open("")
	made := states.MakeAtQuorum(t, client, b.command(masters[0]))
	b.until(fmt.Sprintf("%s === %d", rows, len(made)))
	b.each(made)
	masters[1].Close()
	b.shows("2 of 3 masters count")
	b.each(made)
	masters[2].Close()
	b.shows("1 of 3 masters count")
	b.whole("too few masters")
	b.goTo("servers")
	b.shows("1 of 3 masters count. A lock needs 2.")
	b.whole("too few masters")
	b.right()
}
