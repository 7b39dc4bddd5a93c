//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestTerminal runs testdata/terminal, on the screen of tmux. Quotes break words in the typed
// lines, so that their echo does not match what is waited for.
func TestTerminal(t *testing.T) {
	long(t)
	for _, needed := range []string{"tmux", "bash"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip(err)
		}
	}
	runScripts(t, "testdata/terminal")
}

// A terminal is a session of tmux, with a shell in it.
type terminal struct {
	socket string
	env    []string
}

func (x *terminal) do(ts *testscript.TestScript, args ...string) string {
	cmd := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...)
	cmd.Env = x.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		ts.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

func openTerminal(ts *testscript.TestScript, _ bool, size []string) {
	dir, err := os.MkdirTemp("", "tmux") // short: the path of a socket has at most 100 bytes
	ts.Check(err)
	x := &terminal{socket: filepath.Join(dir, "s"), env: append(os.Environ(), "LC_ALL=C.UTF-8",
		"TERM=screen-256color", "TZ=UTC", "PS1=$ ", "PROMPT_COMMAND=", "HISTFILE=", "TMUX=")}
	for _, name := range []string{"REDIS_URL", "PATH", "GORACE"} {
		x.env = append(x.env, name+"="+ts.Getenv(name))
	}
	x.do(ts, "-u", "-f", os.DevNull, "new-session", "-d", "-c", ts.MkAbs("."), "-x", size[0], "-y", size[1],
		"bash --norc --noprofile -i")
	ts.Defer(func() {
		x.do(ts, "kill-server")
		_ = os.RemoveAll(dir)
	})
	ts.Value("background").(*background).screen = x
}

// press presses keys, by their names or as they are.
func press(ts *testscript.TestScript, _ bool, keys []string) {
	ts.Value("background").(*background).screen.do(ts, append([]string{"send-keys"}, keys...)...)
}

// typeLine types a line, or that of a file whose name stands behind an "@". It clears the screen
// before, so that what is waited for comes after it.
func typeLine(ts *testscript.TestScript, _ bool, args []string) {
	line := args[0]
	if file, ok := strings.CutPrefix(line, "@"); ok {
		line = ts.ReadFile(file)
	}
	press(ts, false, []string{"-R"})
	press(ts, false, []string{"-l", line})
	press(ts, false, []string{"Enter"})
}

// resize gives the terminal another size.
func resize(ts *testscript.TestScript, _ bool, size []string) {
	ts.Value("background").(*background).screen.do(ts, "resize-window", "-x", size[0], "-y", size[1])
}

// These texts differ from run to run.
var masks = strings.NewReplacer("TOKEN", `(TOKEN|\d{15,})`, "TIME", `\d\d:\d\d:\d\d`, " T ", ` [\d.hms]+ `,
	`\\n`, "\n")

// shows waits until the screen has a text, in which two spaces stand for more.
func shows(ts *testscript.TestScript, _ bool, args []string) {
	x := ts.Value("background").(*background).screen
	want, spaces := regexp.MustCompile(masks.Replace(regexp.QuoteMeta(args[0]))), regexp.MustCompile(` {2,}`)
	screen := ""
	if !holdsSoon(func() bool {
		screen = x.do(ts, "capture-pane", "-p")
		return want.MatchString(spaces.ReplaceAllString(screen, "  "))
	}) {
		ts.Fatalf("the screen is\n%s\nand has no\n%s", screen, args[0])
	}
}

// colors fails if the screen has none; negated, if it has some.
func colors(ts *testscript.TestScript, neg bool, _ []string) {
	x := ts.Value("background").(*background).screen
	if strings.Contains(x.do(ts, "capture-pane", "-p", "-e"), "\x1b[") == neg {
		ts.Fatalf("colors: %v", !neg)
	}
}
