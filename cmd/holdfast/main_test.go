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
