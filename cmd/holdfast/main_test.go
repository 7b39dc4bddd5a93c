package main

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/spf13/cobra"
)

// adoptsOrphans makes the process of a test the parent of orphans below it, where the system can.
// Function adoptOrphans does that.
const adoptsOrphans = "HOLDFAST_TEST_ADOPTS_ORPHANS"

// TestMain lets the test binary be the program too: the demo starts its workers from
// os.Executable, and some tests start the demo. The arguments of a test begin with "-". A binary
// called holdfast is the program.
func TestMain(m *testing.M) {
	if os.Getenv(adoptsOrphans) != "" {
		adoptOrphans()
	}
	if filepath.Base(os.Args[0]) == "holdfast" || len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each process of a test ends a second later under -race
	// Notify starts a goroutine of the standard library that never ends. A signal that this process
	// ignores from its start (ctrl-c for a job of a shell, a hangup under nohup) is listened to
	// until the end: otherwise the processes of the tests would ignore it too.
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		signals := make(chan os.Signal, 1)
		ignored := signal.Ignored(s)
		signal.Notify(signals, s)
		if !ignored {
			signal.Stop(signals)
		}
	}
	os.Exit(leak.Main(m))
}

func TestRun(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	for line, test := range map[string]struct {
		code      int
		out, errs string // what must be in it
	}{
		"":                                   {0, "demo ", ""},
		"version":                            {0, "holdfast ", ""},
		"--version":                          {0, "holdfast ", ""},
		"demo --rounds 99999999999999999999": {64, "", `--rounds "99999999999999999999": there is no such`},
		"version now":                        {64, "", `holdfast version takes no arguments, got "now"`},
		"dmeo":                               {64, "", `unknown command "dmeo", did you mean demo or dev?`},
		"nope":                               {64, "", "unknown command \"nope\" (see holdfast --help)\n"},
		"latch foo":                          {64, "", "unknown command \"foo\" (see holdfast latch --help)\n"},
		"help quorum status":                 {0, "holdfast quorum status", ""},
		"help rnu":                           {64, "", `unknown command "rnu", did you mean run?`},
		"dev --addr 127.0.0.1:65536":         {64, "", `--addr "127.0.0.1:65536": port "65536" must be 0 to 65535`},
		"demo --wrokers 3":                   {64, "", "--wrokers"},
		"demo --rounds many":                 {64, "", `--rounds "many": it must be a whole number`},
		"demo --ttl soon":                    {64, "", `--ttl "soon": it must be seconds or a duration, such as 5, 0.5 or 2m`},
		"demo --rounds 0 --workers 99":       {64, "", "--rounds 0: it must be 1 to 50\n--workers 99"},
		"lottery-worker":                     {1, "", "by hand"},
		"quorum stats":                       {64, "", `unknown command "stats"`},
		"quorum status":                      {64, "", "names one server"},
		"quorum status --redis redis://a --redis redis://b":                   {64, "", "2 masters: a quorum has 3"},
		"run --redis quorum:redis://a,redis://b,redis://c --ttl 1h x -- true": {64, "", "at most 5m"},
	} {
		t.Run(line, func(t *testing.T) {
			code, out, errs := execute(t, strings.Fields(line)...)
			if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(errs, test.errs) ||
				(test.errs == "") != (errs == "") {
				t.Errorf("exit code %d, %q, %q; want %d, %q, %q", code, out, errs, test.code, test.out, test.errs)
			}
		})
	}
}

// allCommands are a command and those below it.
func allCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		all = append(all, allCommands(below)...)
	}
	return all
}

// Help without a terminal fits into 80 columns.
func TestHelpFits(t *testing.T) {
	for _, cmd := range allCommands(newRoot()) {
		if cmd.Hidden {
			continue
		}
		_, out, _ := execute(t, append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > cli.PlainWidth {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
	}
}

func TestHelpOmitsHiddenCommands(t *testing.T) {
	_, out, _ := execute(t, "--help")
	for _, name := range []string{"lottery-worker", "keep-server"} {
		if strings.Contains(out, name) {
			t.Errorf("help shows %s:\n%s", name, out)
		}
	}
}

// execute runs the program in this process.
func execute(t *testing.T, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// newClient makes a client until the test is over.
func newClient(t *testing.T, url string, config holdfast.Config) *holdfast.Client {
	t.Helper()
	client, end, err := server.Client(url, server.TLS{}, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); end() })
	return client
}

// measured reports whether tests judge times and may take long: in make proof, where nothing else
// runs. On a busy machine any process may be late. TestGuard checks the deadlines without a clock.
func measured() bool { return os.Getenv("HOLDFAST_PROOF") == "1" && !testing.Short() }

// long skips a test that needs real seconds, a second server, a kill, or a signal to a child: make
// proof runs it.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("long: only with HOLDFAST_PROOF=1")
	}
}

// patient is how long a test waits for an event that must come.
const patient = 30 * time.Second

// holdsSoon reports whether a condition holds before the patience is over.
func holdsSoon(holds func() bool) bool { return eventually.Holds(patient, holds) }

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventually.Must(t, patient, what, holds)
}

// expectRun runs the program until it ends with a code and its output matches all patterns: a
// server that stands still for a moment is away in that moment.
func expectRun(t *testing.T, code int, args []string, patterns ...string) {
	t.Helper()
	var got int
	var output string
	if !holdsSoon(func() bool {
		var out, errs string
		got, out, errs = execute(t, args...)
		output = out + errs
		return got == code && !slices.ContainsFunc(patterns,
			func(pattern string) bool { return !regexp.MustCompile(pattern).MatchString(output) })
	}) {
		t.Fatalf("%v: exit code %d, want %d, and %q in:\n%s", args, got, code, patterns, output)
	}
}
