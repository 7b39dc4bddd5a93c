//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// A session is an interactive shell on a terminal of its own.
type session struct {
	t    *testing.T
	file *os.File

	mu   sync.Mutex
	text string // output that was not expected yet
	more chan struct{}
}

func startSession(t *testing.T, s *redisserver.Server) *session {
	t.Helper()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	bin := t.TempDir()
	linkProgram(t, bin)
	cmd := exec.Command(shell, "--norc", "--noprofile", "-i")
	cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+s.Addr(), "PS1=$ ", "TERM=dumb", "HISTFILE=",
		"INPUTRC=/dev/null", "LC_ALL=C", "PROMPT_COMMAND=",
		"GORACE=atexit_sleep_ms=0",
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	x := &session{t: t, file: file, more: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := file.Read(buf)
			if err != nil {
				return
			}
			x.mu.Lock()
			x.text += string(buf[:n])
			x.mu.Unlock()
			select {
			case x.more <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = file.Close()
		_ = cmd.Wait()
		<-read
	})
	return x
}

func (x *session) send(text string) {
	x.t.Helper()
	if _, err := x.file.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// expect waits for a text, and drops the output up to its end.
func (x *session) expect(want string) {
	x.t.Helper()
	if seen, found := x.within(patient, want); !found {
		x.t.Fatalf("no %q, but\n%s", want, seen)
	}
}

// insist sends a key until a text appears. A shell that gets a signal just before it begins to read
// runs its trap after the read, or after another signal. A shell that is only slow gets no second
// signal: its next command would get that.
func (x *session) insist(key, want string) {
	x.t.Helper()
	const slow = 5 * time.Second
	for range int(patient / slow) {
		x.send(key)
		if _, found := x.within(slow, want); found {
			return
		}
	}
	x.expect(want)
}

// within waits for a text up to a limit. seen is the output after it, or without it.
func (x *session) within(limit time.Duration, want string) (seen string, found bool) {
	for late := time.After(limit); ; {
		x.mu.Lock()
		_, rest, found := strings.Cut(x.text, want)
		if found {
			x.text = rest
		}
		seen := x.text
		x.mu.Unlock()
		if found {
			return seen, true
		}
		select {
		case <-x.more:
		case <-late:
			return seen, false
		}
	}
}

// Quotes break words in the typed lines, so that the echo of the terminal does not match.
func TestTerminal(t *testing.T) {
	long(t)
	s := redisserver.Start(t)
	for name, dialog := range map[string]func(*session){
		"the command reads the terminal": func(x *session) {
			x.send("holdfast run job -- sh -c 'echo re\"\"ady; read a; echo got:$a'\n")
			x.expect("ready")
			x.send("hello\n")
			x.expect("got:hello")
		},
		"ctrl-c is the command's": func(x *session) {
			x.send("holdfast run job -- sh -c 'echo re\"\"ady; exec sleep 60'; echo code=$?\n")
			x.expect("ready")
			x.send("\x03")
			x.expect("code=130")
		},
		"a command that handles ctrl-c": func(x *session) {
			x.send("holdfast run job -- sh -c 'trap \"echo no\\\"\\\"t now\" INT; echo re\"\"ady; read a; read a; echo got:$a; exit 3'; echo code=$?\n")
			x.expect("ready")
			x.insist("\x03", "not now")
			x.send("x\ny\n")
			x.expect("code=3")
		},
		"ctrl-z and fg": func(x *session) {
			x.send("holdfast run job -- sh -c 'echo re\"\"ady; read a; echo got:$a; exit 4'; echo code=$?\n")
			x.expect("ready")
			x.send("\x1a")
			x.expect("Stopped")
			x.send("fg\n")
			x.expect("holdfast run")
			x.send("again\n")
			x.expect("got:again")
		},
		"ctrl-z for too long": func(x *session) {
			x.send("holdfast run --ttl 6s job -- sh -c 'echo re\"\"ady; read a; echo go\"\"on'\n")
			x.expect("ready")
			x.send("\x1a")
			x.expect("Stopped")
			x.send("holdfast run -w 20 job -- echo ta''ken\n")
			x.expect("taken")
			x.send("fg; echo code=$?\n")
			x.expect("KILL to the command")
			x.expect("code=76")
		},
		"in the background until it reads": func(x *session) {
			x.send("holdfast run job -- sh -c 'echo re\"\"ady; read a; echo got:$a' &\n")
			x.expect("ready")
			x.send("until jobs | grep Sto''pped; do sleep 0.01; done\n")
			x.expect("Stopped")
			x.send("fg\n")
			x.expect("holdfast run")
			x.send("at last\n")
			x.expect("got:at last")
		},
		"another of the pipeline has the terminal": func(x *session) {
			x.send("holdfast run job -- echo re''ady | sh -c 'cat; read a </dev/tty; echo pager:$a'\n")
			x.expect("ready")
			x.send("quit\n")
			x.expect("pager:quit")
		},
		"in a pipeline, and reads": func(x *session) {
			x.send("holdfast run job -- sh -c 'echo re\"\"ady; read a; echo got:$a' | cat\n")
			x.expect("ready")
			x.send("me\n")
			x.expect("got:me")
		},
		"a new size": func(x *session) {
			x.send("holdfast run job -- sh -c 'trap \"stty size\" WINCH; echo re\"\"ady; while :; do sleep 0.05; done'; echo code=$?\n")
			x.expect("ready")
			if err := pty.Setsize(x.file, &pty.Winsize{Rows: 33, Cols: 99}); err != nil {
				t.Fatal(err)
			}
			x.expect("33 99")
			x.send("\x03")
			x.expect("code=130")
		},
		"a line while it waits": func(x *session) {
			x.send("holdfast run --label 'so''mebody' job -- sh -c 'echo re\"\"ady; sleep 60' & \n")
			x.expect("ready")
			x.send("holdfast run job -- echo never; echo code=$?\n")
			x.expect(`waiting for "job": held by somebody, for 1`)
			x.expect("0 before us")
			x.send("\x03")
			x.expect("code=130")
			x.send("kill %1; wait; echo do''ne\n")
			x.expect("done")
		},
		"an interactive shell": func(x *session) {
			x.send("holdfast run job -- bash --norc --noprofile -i; echo code=$?\n")
			x.send("sh -c 'echo in\"\"ner; exec sleep 60'\n")
			x.expect("inner")
			x.send("\x1a")
			x.expect("Stopped")
			x.send("kill -9 %1; while jobs | grep Sto''pped; do sleep 0.01; done; exit 5\n")
			x.expect("code=5")
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := startSession(t, s)
			dialog(x)
			x.send("echo back''again; exit\n") // the shell has the terminal
			x.expect("backagain")
		})
	}
}
