package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
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

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		args      []string
		code      int
		out, errs string // what must be in it
	}{
		"help":               {[]string{}, 0, "demo ", ""},
		"version":            {[]string{"version"}, 0, "holdfast ", ""},
		"version, as a flag": {[]string{"--version"}, 0, "holdfast ", ""},
		"too large": {[]string{"demo", "--rounds", "99999999999999999999"}, 64, "",
			`--rounds "99999999999999999999": there is no such`},
		"version with more": {[]string{"version", "now"}, 64, "", `holdfast version takes no arguments, got "now"`},
		"unknown command":   {[]string{"dmeo"}, 64, "", `unknown command "dmeo", did you mean demo or dev?`},
		"nothing like it":   {[]string{"nope"}, 64, "", "unknown command \"nope\" (see holdfast --help)\n"},
		"below a command":   {[]string{"latch", "foo"}, 64, "", "unknown command \"foo\" (see holdfast latch --help)\n"},
		"help about it":     {[]string{"help", "quorum", "status"}, 0, "holdfast quorum status", ""},
		"help about none":   {[]string{"help", "rnu"}, 64, "", `unknown command "rnu", did you mean run?`},
		"no such port": {[]string{"dev", "--addr", "127.0.0.1:65536"}, 64, "",
			`--addr "127.0.0.1:65536": port "65536" must be 0 to 65535`},
		"unknown flag": {[]string{"demo", "--wrokers", "3"}, 64, "", "--wrokers"},
		"not a number": {[]string{"demo", "--rounds", "many"}, 64, "", `--rounds "many": it must be a whole number`},
		"not a duration": {[]string{"demo", "--ttl", "soon"}, 64, "",
			`--ttl "soon": it must be seconds or a duration, such as 5, 0.5 or 2m`},
		"out of range": {[]string{"demo", "--rounds", "0", "--workers", "99"}, 64, "",
			"--rounds 0: it must be 1 to 50\n--workers 99"},
		"worker by hand": {[]string{"lottery-worker"}, 1, "", "by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(context.Background(), test.args, strings.NewReader(""), &out, &errs); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(out.String(), test.out) {
				t.Errorf("stdout %q lacks %q", out.String(), test.out)
			}
			if !strings.Contains(errs.String(), test.errs) || (test.errs == "") != (errs.Len() == 0) {
				t.Errorf("stderr %q, want %q", errs.String(), test.errs)
			}
		})
	}
}

func TestHelpOmitsHiddenCommands(t *testing.T) {
	var out bytes.Buffer
	run(context.Background(), []string{"--help"}, strings.NewReader(""), &out, &out)
	for _, name := range []string{"lottery-worker", "keep-server"} {
		if strings.Contains(out.String(), name) {
			t.Errorf("help shows %s:\n%s", name, out.String())
		}
	}
}

// The error for an address in use names the flag.
func TestDevAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var errs bytes.Buffer
	addr := taken.Addr().String()
	if code := run(context.Background(), []string{"dev", "--addr", addr}, strings.NewReader(""), io.Discard,
		&errs); code != cli.ExitFailed {
		t.Errorf("exit code %d, want %d", code, cli.ExitFailed)
	}
	if !strings.Contains(errs.String(), "--addr "+addr) {
		t.Errorf("stderr %q lacks the flag", errs.String())
	}
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

// expectRun runs the program until it ends with a code and its output has all the texts: a server
// that stands still for a moment is away in that moment.
func expectRun(t *testing.T, code int, args []string, want ...string) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); ; {
		var out, errs bytes.Buffer
		got := run(t.Context(), args, strings.NewReader(""), &out, &errs)
		output := out.String() + errs.String()
		if got == code && !slices.ContainsFunc(want,
			func(text string) bool { return !strings.Contains(output, text) }) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%v: exit code %d, want %d, and %q in:\n%s", args, got, code, want, output)
		}
	}
}
