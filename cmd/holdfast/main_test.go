package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alicebob/miniredis/v2"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
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
	fatal.If(t, err)
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

// Each command has a page with what its help has, in the sections of man. Where mandoc is here, it
// finds nothing to warn of.
func TestPagesOfMan(t *testing.T) {
	dir := t.TempDir()
	fatal.If(t, writePages(newRoot(), dir, "2026-11-26"))
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, pageName(cmd)+".1"))
		fatal.If(t, err)
		for section, want := range map[string]bool{
			"NAME": true, "SYNOPSIS": true, "DESCRIPTION": true, "OPTIONS": true, "ENVIRONMENT": true,
			"COMMANDS": len(shownCommands(cmd)) > 0, "EXIT STATUS": strings.Contains(cmd.Long, "Exit codes: "),
			"EXAMPLES": cmd.Example != "", "SEE ALSO": cmd.HasParent(),
		} {
			if got := strings.Count(string(text), ".SH "+section+"\n"); got > 1 || got == 1 != want {
				t.Errorf("%s has %d sections %s", pageName(cmd), got, section)
			}
		}
		for _, c := range shownCommands(cmd) {
			check(c)
		}
	}
	check(newRoot())
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatal(pages, err)
	}
	if mandoc, err := exec.LookPath("mandoc"); err == nil {
		args := append([]string{"-T", "lint", "-W", "warning"}, pages...)
		if out, err := exec.Command(mandoc, args...).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

func TestVersionOf(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef01234567"
	build := func(version, modified string) debug.BuildInfo {
		info := debug.BuildInfo{Main: debug.Module{Version: version}}
		if modified != "" {
			info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: id},
				{Key: "vcs.modified", Value: modified}}
		}
		return info
	}
	for name, test := range map[string]struct {
		release, commit string
		info            debug.BuildInfo
		want            string
	}{
		"nothing known":       {info: debug.BuildInfo{}, want: "development version, commit unknown"},
		"go run":              {info: build("(devel)", ""), want: "development version, commit unknown"},
		"go install of a tag": {info: build("v1.2.3", ""), want: "v1.2.3"},
		"go install of a commit": {info: build("v0.0.0-20261124043801-0123456789ab", ""),
			want: "development version of commit 0123456789ab"},
		"go install of a commit after a tag": {info: build("v1.2.4-0.20261124043801-0123456789ab", ""),
			want: "development version of commit 0123456789ab"},
		"a clone": {info: build("v0.0.0-20261124043801-0123456789ab", "false"),
			want: "development version of commit 0123456789ab"},
		"a clone with changes": {info: build("v0.0.0-20261124043801-0123456789ab+dirty", "true"),
			want: "development version of commit 0123456789ab with changes"},
		"a clone, built without a version": {info: build("(devel)", "true"),
			want: "development version of commit 0123456789ab with changes"},
		"a clone at a tag": {info: build("v1.2.3", "false"), want: "v1.2.3 of commit 0123456789ab"},
		"a clone at a tag with changes": {info: build("v1.2.3+dirty", "true"),
			want: "v1.2.3 of commit 0123456789ab with changes"},
		"a release": {release: "v1.2.3", commit: id, info: build("(devel)", ""),
			want: "v1.2.3 of commit 0123456789ab"},
		"a release for trial, of a clone with changes": {release: "v0.0.0-dev", commit: id + "+dirty",
			info: build("(devel)", ""),
			want: "v0.0.0-dev of commit 0123456789ab with changes"},
		"a release whose build settings say something else": {release: "v1.2.3", commit: id, info: build("v9.9.9", "false"),
			want: "v1.2.3 of commit 0123456789ab"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := versionOf(test.release, test.commit, &test.info).String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The line that holds is shown, and a terminal obeys no text of it.
func TestInspectShowsTheStack(t *testing.T) {
	mini := miniredis.RunT(t)
	t.Setenv("REDIS_URL", "redis://"+mini.Addr())
	client := newClient(t, "redis://"+mini.Addr(), holdfast.Config{Label: "web\x1b[2J", Remote: true})
	for range 2 {
		lease, err := client.RWMutex("n").RLock(t.Context())
		fatal.If(t, err)
		defer lease.Release()
	}
	expectRun(t, 0, []string{"inspect", "--stack", "n"}, `(?m)^"web\\x1b\[2J", token \d+: the oldest of 2 leases was taken \S+ ago by
  github.com/holdfast-go/holdfast/cmd/holdfast.TestInspectShowsTheStack main_test.go:\d+
  testing.tRunner testing.go:\d+$`)
	expectRun(t, 0, []string{"inspect", "--stack", "-o", "json", "n"}, `(?m)^          "file": "main_test.go",$`)
}
