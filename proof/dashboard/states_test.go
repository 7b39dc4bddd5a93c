package dashboard_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/states"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// whole fails the test if the page shows a value that is not there.
func (b *viewer) whole(where string) {
	b.Helper()
	const bad = `(document.body.innerText.match(/.*(undefined|\bNaN\b|\bnull\b|\[object|Invalid Date).*/g) ?? []).join("; ")`
	if got := b.text(bad); got != "" {
		b.Errorf("%s: the page shows %s", where, got)
	}
}

// Of names in every state, and of every change, the page shows nothing that is not there.
func TestEveryStateIsShownWhole(t *testing.T) {
	b := newViewer(t)
	mini, now := miniredis.RunT(t), time.Now()
	mini.SetTime(now) // its clock stands still
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	command := func(args ...any) { // of an operator
		t.Helper()
		if err := rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	client := func(config *holdfast.Config, dial states.Dial) *holdfast.Client {
		return harness.Locker(t, mini.Addr(), config, func(o *redis.Options) { o.Dialer, o.DialerRetries = dial, 1 })
	}
	b.serve(client(&holdfast.Config{Label: "operator"}, nil))
	b.open("")
	made := states.Make(t, states.Server{Client: client, Command: command,
		Ahead: func(step time.Duration) { now = now.Add(step); mini.SetTime(now) }})
	b.until(fmt.Sprintf(`document.getElementById("count").textContent.startsWith("%d of")`, len(made)))
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
	b.shows("1 broken, ")
	if names := b.names(); !strings.HasPrefix(names, "broken order:42 read ") {
		t.Errorf("what is in trouble does not come first, then who waits: %s", names)
	}
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
