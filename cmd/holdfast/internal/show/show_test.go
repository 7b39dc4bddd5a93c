package show

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// hostile are texts that a terminal would obey, or that look like others.
var hostile = map[string]string{
	"red\x1b[31m":                `"red\x1b[31m"`,
	"title\x1b]0;x\x07":          `"title\x1b]0;x\a"`,
	"c1\u009b31m":                `"c1\u009b31m"`,
	"bytes\x9b31m":               `"bytes\x9b31m"`,
	"over\rwrite":                `"over\rwrite"`,
	"two\nlines":                 `"two\nlines"`,
	"tab\tbed":                   `"tab\tbed"`,
	"bidi\u202egnp.exe":          `"bidi\u202egnp.exe"`,
	"isolate\u2066x\u2069":       `"isolate\u2066x\u2069"`,
	"zero\u200bwidth":            `"zero\u200bwidth"`,
	"bom\ufeff":                  `"bom\ufeff"`,
	"tag\U000e0041":              `"tag\U000e0041"`,
	"nbsp\u00a0x":                `"nbsp\u00a0x"`,
	"line\u2028sep":              `"line\u2028sep"`,
	"nul\x00":                    `"nul\x00"`,
	"del\x7f":                    `"del\x7f"`,
	"\xff\xfe":                   `"\xff\xfe"`,
	"\u0301mark first":           `"\u0301mark first"`,
	"z" + strings.Repeat("̀", 5): `"z` + strings.Repeat("̀", 4) + `\u0300"`,
	" led":                       `" led"`,
	"followed ":                  `"followed "`,
	`"quoted"`:                   `"\"quoted\""`,
	`back\x1bslash`:              `"back\\x1bslash"`,
	"":                           `""`,
}

func TestTextShowsNothingThatATerminalObeys(t *testing.T) {
	for in, want := range hostile {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) is %s, want %s", in, got, want)
		}
		if back, err := strconv.Unquote(Text(in)); err != nil || back != in {
			t.Errorf("Text(%q) is read back as %q, %v", in, back, err)
		}
	}
	for _, in := range []string{"order:42", "web@host/12", "naïve job", "日本語", "עברית", "e\u0301te", "😀", "it's"} {
		if got := Text(in); got != in {
			t.Errorf("Text(%q) is %s", in, got)
		}
	}
}

func TestLinesKeepsLinesAndQuotes(t *testing.T) {
	if got, want := Lines("a \"b\" \x1b[1m\nc\u202e"), "a \"b\" \\x1b[1m\nc\\u202e"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever the bytes, the text is one printable line, and its JSON is valid and safe.
func FuzzText(f *testing.F) {
	for in := range hostile {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		shown := Text(in)
		document, err := JSON(lockinfo.Info{Name: in}, "")
		fatal.If(t, err)
		for _, text := range []string{shown, Lines(shown), document} {
			for _, r := range text {
				if !strconv.IsPrint(r) {
					t.Fatalf("%q: %q contains %q", in, text, r)
				}
			}
			if !utf8.ValidString(text) {
				t.Fatalf("%q: %q is no UTF-8", in, text)
			}
		}
		var back lockinfo.Info
		if err := json.Unmarshal([]byte(document), &back); in != "" && (err != nil || back.Name != in) {
			t.Fatalf("%q came back as %q, %v", in, back.Name, err)
		}
	})
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 420 * time.Millisecond: "0.4s", 9949 * time.Millisecond: "9.9s",
		9950 * time.Millisecond:  "10s",
		59400 * time.Millisecond: "59s", 59600 * time.Millisecond: "1m00s", 185 * time.Second: "3m05s",
		7620 * time.Second: "2h07m", 98 * time.Hour: "4d02h", 5000 * time.Hour: "208d",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) is %s, want %s", d, got, want)
		}
	}
}

var at = time.Date(2026, 11, 24, 2, 14, 5, 0, time.UTC)

// locks are names in every state.
func locks() []lockinfo.Info {
	hold := func(state lockinfo.State, label string, mode lockinfo.Mode, token int64,
		held time.Duration) lockinfo.Hold {
		return lockinfo.Hold{State: state, Label: label, Host: "a", PID: 12, Mode: mode, Token: token,
			LastToken: token + 63,
			Since:     at.Add(-held), Remaining: 13 * time.Second, TTL: 15 * time.Second,
			Renewed: at.Add(-2 * time.Second)}
	}
	late := hold(lockinfo.StateHeld, "cron@b/7", lockinfo.ModeExclusive, 18, 3*time.Hour)
	late.Late, late.Renewed = true, at.Add(-9*time.Second)
	broken := hold(lockinfo.StateBroken, "worker", lockinfo.ModeExclusive, 19, time.Minute)
	broken.By = "ops\x1b[2J"
	fixed := hold(lockinfo.StateHeld, "batch", lockinfo.ModeReads, 21, time.Second)
	fixed.Fixed, fixed.Owner = true, "team a"
	permits := hold(lockinfo.StateHeld, "pool", lockinfo.ModePermits, 22, time.Second)
	permits.Permits = 2
	return []lockinfo.Info{
		{Name: "order:42", Kind: "mutex", At: at,
			Holds:   []lockinfo.Hold{hold(lockinfo.StateHeld, "web@a/12", lockinfo.ModeExclusive, 17, 185*time.Second)},
			Holders: 1, Waiters: 2, Queue: []lockinfo.Waiter{
				{ID: "abcdefgh23456723", Place: 1, Label: "web@b/3", Host: "b", PID: 3, Mode: lockinfo.ModeExclusive,
					Since: at.Add(-4 * time.Second), Alive: lockinfo.AliveYes, Under: []string{"other", "evil\x07"}},
				{ID: "bcdefgh234567234", Label: "step", Mode: lockinfo.ModeExclusive, Since: at.Add(-time.Second),
					Alive: lockinfo.AliveNo, Kept: true},
			}},
		{Name: "late", Kind: "mutex", At: at, Holds: []lockinfo.Hold{late}, Holders: 1},
		{Name: "broken", Kind: "mutex", At: at, Holds: []lockinfo.Hold{broken}, Holders: 1},
		{Name: "docs", Kind: "rwmutex", At: at,
			Holds:   []lockinfo.Hold{fixed, hold(lockinfo.StateHeld, "older", lockinfo.ModeReads, 20, time.Hour)},
			Holders: 2},
		{Name: "pool", Kind: "semaphore", At: at, Holds: []lockinfo.Hold{permits}, Holders: 1, Permits: 5, Taken: 2},
		{Name: "ready", Kind: "latch", At: at, Count: 3},
		{Name: "\xff\u202eevil", Kind: "mutex", At: at, Waiters: 1},
		{Name: "holdfast:{odd}", At: at, Foreign: "a list, and no lock"},
	}
}

// golden compares what is shown with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	want, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil || got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("%s: got:\n%s\nwant:\n%s%v", name, got, want, err)
	}
}

func TestListOfLocks(t *testing.T) {
	var out bytes.Buffer
	table := Page{Out: &out}.Table(LockColumns)
	for _, info := range locks() {
		fatal.If(t, table.Row(LockRow(info)...))
	}
	fatal.If(t, table.Flush())
	golden(t, "list", out.String())
}

// A table keeps its first rows alone, and writes the others at once.
func TestTableStreams(t *testing.T) {
	var out bytes.Buffer
	table := Page{Out: &out}.Table([]Column{{Title: "N", Right: true}, {Title: "TEXT"}})
	for i := range firstRows {
		if out.Len() > 0 {
			t.Fatalf("row %d is written before the widths are known", i)
		}
		_ = table.Row(Cell{Text: strconv.Itoa(i)}, Cell{Text: "x"})
	}
	before := out.Len()
	_ = table.Row(Cell{Text: "12345"}, Cell{Text: "wider"})
	if got := out.String()[before:]; got != "12345  wider\n" {
		t.Errorf("got %q", got)
	}
}

func TestTableTellsTheErrorOfItsWriter(t *testing.T) {
	full := errors.New("full")
	table := Page{Out: failing{full}}.Table([]Column{{Title: "N"}})
	_ = table.Row(Cell{Text: "1"})
	if err := table.Flush(); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestDetail(t *testing.T) {
	zone := time.Local
	time.Local = time.UTC
	defer func() { time.Local = zone }()
	quorum := locks()[0]
	quorum.Masters = []lockinfo.Master{
		{Node: "node 1", Counts: true, Holds: quorum.Holds},
		{Node: "node 2", Why: "born 3m ago"},
		{Node: "node 3", Why: "dial: refused\x1b[1m",
			Err: errors.New("holdfast: inspect at node 3: dial: refused\x1b[1m")},
	}
	many := locks()[3]
	many.Holders = 120
	for name, info := range map[string]lockinfo.Info{
		"mutex": locks()[0], "many": many, "semaphore": locks()[4], "latch": locks()[5], "quorum": quorum,
	} {
		var out bytes.Buffer
		fatal.If(t, (Page{Out: &out}).Detail(info))
		golden(t, name, out.String())
	}
	quorum.Masters[1].Counts = true
	if got, want := Verdict(quorum), "verdict: held, by 2 of 3 masters that count"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestQueue(t *testing.T) {
	var out bytes.Buffer
	table, info := Page{Out: &out}.Table(WaiterColumns), locks()[0]
	for _, w := range info.Queue {
		_ = table.Row(WaiterRow(w, info)...)
	}
	_ = table.Flush()
	golden(t, "queue", out.String())
}

func TestCycle(t *testing.T) {
	got := Cycle(lockinfo.Deadlock{Members: []lockinfo.Member{
		{Label: "a", Holds: "x", Token: 1, Waits: "y\x1b"}, {Host: "h", PID: 2, Holds: "y\x1b", Token: 2, Waits: "x"}}})
	want := "  a holds x (token 1) and waits for \"y\\x1b\"\n  h/2 holds \"y\\x1b\" (token 2) and waits for x\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// On 80 columns each table fits: columns that can be spared are left out before names get too short
// to be read.
func TestTablesFitEightyColumns(t *testing.T) {
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	held := lockinfo.Hold{State: lockinfo.StateHeld, Owner: "RGV5XFOEFRZX7FQ6DTB2DTAXLR",
		Label: "billing-worker-7@eu-west-1-prod-0042/31337", Host: "prod-0042", PID: 31337,
		Mode: lockinfo.ModeExclusive, Token: 1795536162229845, LastToken: 1795536162229845, Since: at.Add(-time.Hour),
		Renewed: at.Add(-4 * time.Second), Remaining: 11 * time.Second, TTL: 15 * time.Second}
	waiter := lockinfo.Waiter{ID: "lodewukrlx5x5hvc", Place: 1, Owner: held.Owner, Label: held.Label, Host: held.Host,
		PID: held.PID, Mode: held.Mode, Since: held.Since, Alive: lockinfo.AliveYes}
	info := lockinfo.Info{Name: "order:42:customer:" + strings.Repeat("日本", 40), Kind: "mutex", At: at,
		Holds: []lockinfo.Hold{held}, Holders: 1,
		Queue: []lockinfo.Waiter{waiter}, Waiters: 1, WaitingSince: at.Add(-time.Hour)}
	for name, table := range map[string]struct {
		columns    []Column
		row        []Cell
		has, lacks []string
	}{
		"locks": {LockColumns, LockRow(info), []string{"order:42:customer:", "billing-worker-7@eu", "\x1b[", "LONGEST"},
			[]string{"TOKEN"}},
		"holds":   {HoldColumns, HoldRow(held, info), []string{"TOKEN", "HELD", "RENEWED"}, []string{"OWNER", "SINCE"}},
		"waiters": {WaiterColumns, WaiterRow(waiter, info), []string{"lodewukrlx5x5hvc", "ALIVE"}, []string{"OWNER"}},
	} {
		var out strings.Builder
		narrow := &Table{Out: &out, Width: 80, Colors: true, Columns: table.columns}
		fatal.If(t, errors.Join(narrow.Row(table.row...), narrow.Flush()))
		for line := range strings.Lines(out.String()) {
			if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
		for _, text := range append(table.has, table.lacks...) {
			if got, want := strings.Contains(out.String(), text), slices.Contains(table.has, text); got != want {
				t.Errorf("%s: has %q: %v in\n%s", name, text, got, &out)
			}
		}
	}
}

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
