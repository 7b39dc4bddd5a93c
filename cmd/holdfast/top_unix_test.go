//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// A tmux is a terminal whose screen can be read.
type tmux struct {
	t      *testing.T
	socket string
	env    []string
}

// startTmux starts a terminal with a shell in it, on which holdfast asks a server.
func startTmux(t *testing.T, s *redisserver.Server, columns, rows int) *tmux {
	t.Helper()
	for _, needed := range []string{"tmux", "bash"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip(err)
		}
	}
	bin, err := os.MkdirTemp("", "tmux") // short: the path of a socket has at most 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	linkProgram(t, bin)
	x := &tmux{t: t, socket: filepath.Join(bin, "s"),
		env: append(os.Environ(), "REDIS_URL=redis://"+s.Addr(), "LC_ALL=C.UTF-8", "TERM=screen-256color",
			"TZ=UTC", "PS1=$ ", "PROMPT_COMMAND=", "HISTFILE=", "TMUX=", "GORACE=atexit_sleep_ms=0",
			"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))}
	x.do("-u", "-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows),
		"bash --norc --noprofile -i")
	t.Cleanup(func() { x.do("kill-server") })
	return x
}

func (x *tmux) do(args ...string) string {
	x.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...)
	cmd.Env = x.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// press sends keys, by their names or as they are.
func (x *tmux) press(keys ...string) { x.do(append([]string{"send-keys"}, keys...)...) }

// enter types a line.
func (x *tmux) enter(line string) {
	x.do("send-keys", "-l", line)
	x.press("Enter")
}

// These texts differ from run to run.
var masks = strings.NewReplacer("TOKEN", `(TOKEN|\d{15,})`, "TIME", `\d\d:\d\d:\d\d`, " T ", ` [\d.hms]+ `)

// has waits until the screen has a text, in which two spaces stand for more.
func (x *tmux) has(text string) {
	x.t.Helper()
	want, spaces := regexp.MustCompile(masks.Replace(regexp.QuoteMeta(text))), regexp.MustCompile(` {2,}`)
	screen := ""
	if !holdsSoon(func() bool {
		screen = x.do("capture-pane", "-p")
		return want.MatchString(spaces.ReplaceAllString(screen, "  "))
	}) {
		x.t.Fatalf("the screen is\n%s\nand has no\n%s", screen, text)
	}
}

// contenders hold and wait for some names until the test is over.
func contenders(t *testing.T, s *redisserver.Server) {
	t.Helper()
	web := newClient(t, "redis://"+s.Addr(), holdfast.Config{Label: "web@a"})
	for _, name := range []string{"order:1", "order:2", "evil\x1b[2J"} {
		if _, err := web.Mutex(name, holdfast.WithTTL(time.Minute)).TryLock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for i := range 2 {
		client := newClient(t, "redis://"+s.Addr(), holdfast.Config{Label: fmt.Sprintf("cron@%d\u202e", i)})
		waiting.Go(func() { _, _ = client.Mutex("order:2").Lock(ctx) })
		until(t, "another waits", func() bool {
			info, err := web.Inspect(t.Context(), "order:2")
			return err == nil && info.Waiters == i+1
		})
	}
	t.Cleanup(func() { cancel(); waiting.Wait() })
}

func TestTopOnATerminal(t *testing.T) {
	long(t)
	s := redisserver.Start(t)
	contenders(t, s)
	x := startTmux(t, s, 130, 16)
	capture := filepath.Join(t.TempDir(), "capture")
	x.enter("clear; holdfast top --capture " + capture + "; echo co''de=$?")
	x.has("TIME  3 names, 1 contended, 0 late, longest wait ")
	x.has("looking every second (it took ")
	x.has("WAIT  LONGEST  HOLDER WAITS FOR\n>  order:1  mutex  held  web@a  TOKEN  T  T  0  order:2?\n" +
		"  order:2  mutex  held  web@a  TOKEN  T  T  2  ")
	x.do("resize-window", "-x", "130", "-y", "16")
	s.Stop()
	x.has("away since TIME: no answer")
	s.Continue()
	x.has("what lasts for less may not be seen")
	x.press("Home", "b")
	x.has("Break the hold of web@a on order:1, token TOKEN?\ny breaks it: others get in when it has stopped. Any other key does nothing.")
	x.press("y")
	x.has("broken: token TOKEN of order:1; others get in when its holder has stopped")
	x.has("order:1  mutex  broken  web@a")
	x.press("q")
	x.has("code=0")

	x.enter("clear; holdfast top " + capture + "; echo co''de=$?")
	x.has("capture, snapshot 1 of")
	x.has("order:2  mutex  held  web@a  TOKEN")
	x.press("Right")
	x.has("capture, snapshot 2 of")
	x.press("]")
	x.press("C-c")
	x.has("code=0")
	x.enter("clear; holdfast top --capture " + capture + "; echo co''de=$?")
	x.has("exists already")
	x.has("code=1")
	x.enter("clear; holdfast top --redis redis://127.0.0.1:1; echo co''de=$?")
	x.has("no answer from a server")
	x.has("code=69")
}

// break shows what it would hit, and asks. Without a yes nothing is done.
func TestBreakAsksOnATerminal(t *testing.T) {
	long(t)
	s := redisserver.Start(t)
	contenders(t, s)
	x := startTmux(t, s, 130, 40)
	for i, step := range []struct{ line, question, answer, want string }{
		{"holdfast break order:1", "Break the hold with token TOKEN, of web@a? [y/N]", "n",
			"holdfast: nothing was broken"},
		{"holdfast break order:1", "Break the hold with token TOKEN, of web@a? [y/N]", "",
			"holdfast: nothing was broken"},
		{"holdfast break order:1", "Break the hold with token TOKEN, of web@a? [y/N]", "yes",
			"broken: order:1, token TOKEN"},
		{"holdfast break --force order:1", "Type the name to break the hold with token TOKEN, of web@a:", "y",
			"holdfast: nothing was broken"},
		{"holdfast break --force order:1", "--force lets others in at once, although the holder may still write: two may hold then.", "order:1", "broken: order:1, token TOKEN; others get in"},
	} {
		code := 0
		if strings.HasPrefix(step.want, "holdfast: nothing") {
			code = 1
		}
		x.enter(fmt.Sprintf("clear; %s; echo en''d%d=$?", step.line, i))
		x.has(step.question)
		x.enter(step.answer)
		x.has(step.want)
		x.has(fmt.Sprintf("end%d=%d", i, code))
	}
	x.enter("clear; holdfast break order:9; echo en''d=$?")
	x.has("nothing was broken: nobody holds \"order:9\"\nend=1")
	x.enter("clear; holdfast break order:2; echo en''d=$?")
	x.has("[y/N]")
	x.press("C-d")
	x.has("nothing was broken\nend=1")
	x.enter("clear; holdfast break --token 1 --force order:2; echo en''d=$?")
	x.has("none of these holds has the token 1\nend=1")
}

// Of several holds one is chosen by its token, also one that is not shown.
func TestBreakAsksForAToken(t *testing.T) {
	long(t)
	s := redisserver.Start(t)
	client := newClient(t, "redis://"+s.Addr(), holdfast.Config{Label: "pool", MaxTTL: time.Hour, TTL: time.Hour})
	leases := map[int64]*holdfast.Lease{}
	for range 103 {
		lease, err := client.Semaphore("slots", 103).Acquire(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		leases[lease.Token()] = lease
	}
	info, err := client.Inspect(t.Context(), "slots")
	if err != nil || info.Holders != 103 || len(info.Holds) != 100 {
		t.Fatalf("%d of %d holds, %v", len(info.Holds), info.Holders, err)
	}
	for _, h := range info.Holds {
		delete(leases, h.Token)
	}
	x := startTmux(t, s, 130, 40)
	x.enter("clear; holdfast break slots; echo no''ne=$?")
	x.has("Which hold is to be broken? Type its token:")
	x.enter("no")
	x.has("nothing was broken\nnone=1")
	for token, lease := range leases {
		x.enter("clear; holdfast break slots; echo o''ne=$?")
		x.has("more holds are not shown; logs and HOLDFAST_TOKEN may have their tokens.\nWhich hold is to be broken? Type its token:")
		x.enter(fmt.Sprint(token))
		x.has("which is not shown? [y/N]")
		x.enter("y")
		x.has("one=0")
		if err := lease.Check(t.Context()); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("the hold is not broken: %v", err)
		}
		break
	}
	x.enter("clear; holdfast break --token 1 --force slots; echo non''e=$?")
	x.has("with token 1, which is not shown:")
	x.enter("slots")
	x.has(`nothing was broken: "slots" has no hold with the token 1 (any more)`)
	x.has("none=1")
}

// A table fits the terminal, and has colors there, unless NO_COLOR says no.
func TestTablesOnATerminal(t *testing.T) {
	long(t)
	s := redisserver.Start(t)
	contenders(t, s)
	x := startTmux(t, s, 100, 40)
	colored := func() bool { return strings.Contains(x.do("capture-pane", "-p", "-e"), "\x1b[") }
	x.enter("clear; holdfast ls; echo co''de=$?")
	x.has("NAME  KIND  STATE  HOLDER  TOKEN  HELD  LEFT  WAIT  LONGEST  HOST/PID\n\"evil\\x1b[2J\"  mutex  held  web@a")
	x.has("code=0")
	if !colored() {
		t.Error("no colors")
	}
	x.enter("clear; NO_COLOR=1 holdfast ls; NO_COLOR=1 holdfast inspect order:2; echo pla''in=$?")
	x.has("plain=0")
	if colored() {
		t.Errorf("colors, although NO_COLOR is set:\n%q", x.do("capture-pane", "-p", "-e"))
	}
}
