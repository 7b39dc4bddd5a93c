//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// TestScripts runs testdata/script, for flags, output and exit codes.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// TestLongScripts runs testdata/proof: real seconds pass, and processes and servers are stopped and
// killed.
func TestLongScripts(t *testing.T) {
	long(t)
	runScripts(t, "testdata/proof")
}

// runScripts runs the scripts of a folder. Each has a redis-server of its own at REDIS_URL. These
// commands are added to those of testscript:
//
//	exits CODE PROGRAM ARGS...      runs it and compares its exit code
//	bg NAME PROGRAM ARGS...         starts it; its output goes to NAME.out and NAME.err
//	ended NAME CODE                 waits for it and compares its exit code
//	signal NAME SIGNAL              sends it a signal, such as TERM
//	await FILE PATTERN              waits until a line of a file matches
//	server stop|continue|kill|restart
//	server do ARGS...               sends a command; its answer is stdout
//	server start NAME OPTIONS...    starts another server: NAME is its address, and NAME_PORT its port
//	server at NAME ...              does it at that one
//	becomes CODE PATTERN PROGRAM... runs it until its exit code and a line of its output are these
//	server asked                    waits for a request at the address PROXY, which leads to it
//	server swallow TEXT             lets the proxy lose the next answer or message with the text
//	terminal COLUMNS ROWS           starts a terminal with a shell, in the place of the one before
//	type LINE                       types a line on a clear screen; "type @FILE" types that of a file
//	press KEYS...                   presses keys, by their names
//	resize COLUMNS ROWS
//	shows TEXT                      waits until the screen has the text
//	colors                          fails unless the screen has colors
func runScripts(t *testing.T, dir string) {
	t.Helper()
	bin := t.TempDir()
	linkProgram(t, bin)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			s, err := redisserver.Run(context.Background(), "--unixsocket", filepath.Join(env.WorkDir, "redis.sock"))
			if err != nil {
				return err
			}
			b := &background{started: map[string]*exec.Cmd{}, servers: map[string]*redisserver.Server{}}
			proxy, err := fault.Listen(s.Addr())
			if err != nil {
				_ = s.Close()
				return err
			}
			proxy.Record()
			env.Defer(func() {
				b.end()
				_ = s.Close()
				proxy.Close()
			})
			env.Setenv("PROXY", proxy.Addr())
			env.Values["server"], env.Values["proxy"], env.Values["background"] = s, proxy, b
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("REDIS_URL", "redis://"+s.Addr())
			env.Setenv("ADDR", s.Addr())
			env.Setenv("ADDR_PORT", strconv.Itoa(s.Port()))
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "becomes": becomes, "bg": startBackground, "ended": ended, "signal": signalTo,
			"await": await, "server": serverCommand, "terminal": openTerminal, "press": press, "type": typeLine,
			"resize": resize, "shows": shows, "colors": colors,
		},
	})
}

// linkProgram puts holdfast, which is this program, into a folder for a PATH.
func linkProgram(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "holdfast"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	compare(ts, ts.Exec(args[1], args[2:]...), args[0])
}

// becomes runs a program again: a server that stands still for a moment is away in that moment.
func becomes(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile("(?m)" + args[1])
	var text string
	if !holdsSoon(func() bool {
		cmd := exec.Command("holdfast", args[3:]...)
		cmd.Path, cmd.Err = filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[2]), nil
		cmd.Env = append(os.Environ(), "REDIS_URL="+ts.Getenv("REDIS_URL"))
		out, _ := cmd.CombinedOutput()
		text = fmt.Sprintf("exit code %d, %s", cmd.ProcessState.ExitCode(), out)
		return strings.HasPrefix(text, "exit code "+args[0]+",") && pattern.MatchString(text)
	}) {
		ts.Fatalf("want exit code %s and %q, got %s", args[0], args[1], text)
	}
}

func compare(ts *testscript.TestScript, err error, want string) {
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		if code = exit.ExitCode(); code < 0 {
			ts.Fatalf("ended by %v, want exit code %s", exit, want)
		}
	case err != nil:
		ts.Check(err)
	}
	if strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// background are the processes of a script, and its terminal.
type background struct {
	started map[string]*exec.Cmd
	servers map[string]*redisserver.Server // that were started
	screen  *terminal
}

func (b *background) end() {
	for _, cmd := range b.started {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func startBackground(ts *testscript.TestScript, _ bool, args []string) {
	b := ts.Value("background").(*background)
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.Getenv("PWD")
	if cmd.Dir == "" {
		cmd.Dir = ts.MkAbs(".")
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "REDIS_URL", "GORACE", "WORK"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	if path, err := exec.LookPath(args[1]); err == nil {
		cmd.Path, cmd.Err = path, nil
	}
	if args[1] == "holdfast" {
		cmd.Path, cmd.Err = filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "holdfast"), nil
	}
	for suffix, to := range map[string]*io.Writer{".out": &cmd.Stdout, ".err": &cmd.Stderr} {
		f, err := os.Create(ts.MkAbs(args[0] + suffix))
		ts.Check(err)
		defer f.Close()
		*to = f
	}
	ts.Check(cmd.Start())
	b.started[args[0]] = cmd
}

func (b *background) get(ts *testscript.TestScript, name string) *exec.Cmd {
	cmd := b.started[name]
	if cmd == nil {
		ts.Fatalf("nothing is called %s", name)
	}
	return cmd
}

func ended(ts *testscript.TestScript, _ bool, args []string) {
	b := ts.Value("background").(*background)
	cmd := b.get(ts, args[0])
	late := time.AfterFunc(patient, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	late.Stop()
	delete(b.started, args[0])
	for _, suffix := range []string{".out", ".err"} {
		ts.Logf("[%s%s]\n%s", args[0], suffix, ts.ReadFile(args[0]+suffix))
	}
	compare(ts, err, args[1])
}

func signalTo(ts *testscript.TestScript, _ bool, args []string) {
	number := unix.SignalNum("SIG" + args[1])
	if number == 0 {
		ts.Fatalf("no signal %s", args[1])
	}
	ts.Check(ts.Value("background").(*background).get(ts, args[0]).Process.Signal(number))
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile("(?m)" + args[1])
	var text []byte
	if !holdsSoon(func() (found bool) {
		text, _ = os.ReadFile(ts.MkAbs(args[0]))
		return pattern.Match(text)
	}) {
		ts.Fatalf("no %q in %s:\n%s", args[1], args[0], text)
	}
}

func serverCommand(ts *testscript.TestScript, _ bool, args []string) {
	s, others := ts.Value("server").(*redisserver.Server), ts.Value("background").(*background).servers
	if args[0] == "at" {
		s, args = others[args[1]], args[2:]
	}
	switch args[0] {
	case "stop":
		s.Stop()
	case "continue":
		s.Continue()
	case "kill":
		s.Kill()
	case "restart":
		ts.Check(s.Restart())
	case "start":
		more, err := redisserver.Run(context.Background(), args[2:]...)
		ts.Check(err)
		ts.Defer(func() { _ = more.Close() })
		ts.Setenv(args[1], more.Addr())
		ts.Setenv(args[1]+"_PORT", strconv.Itoa(more.Port()))
		others[args[1]] = more
	case "asked":
		if !holdsSoon(func() bool { return len(ts.Value("proxy").(*fault.Proxy).Sent("")) > 0 }) {
			ts.Fatalf("nobody asks the server through the proxy")
		}
	case "swallow":
		ts.Value("proxy").(*fault.Proxy).SwallowAnswer(args[1])
	case "do":
		rest := make([]any, len(args)-1)
		for i, arg := range args[1:] {
			rest[i] = arg
		}
		answer, err := s.Do(rest...)
		ts.Check(err)
		_, _ = fmt.Fprintln(ts.Stdout(), answer)
	default:
		ts.Fatalf("server %s?", strings.Join(args, " "))
	}
}

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
