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

// A step of a dialog types a text, and waits for another one.
type dialogStep struct{ send, expect string }

// Steps that type no text.
const (
	resize = "(a new size of the terminal)"
	insist = "(ctrl-c, until the text appears)"
)

// Quotes break words in the typed lines, so that the echo of the terminal does not match.
func TestTerminal(t *testing.T) {
	long(t)
	s := redisserver.Start(t)
	for name, dialog := range map[string][]dialogStep{
		"the command reads the terminal": {
			{"holdfast run job -- sh -c 'echo re\"\"ady; read a; echo got:$a'\n", "ready"},
			{"hello\n", "got:hello"},
		},
		"ctrl-c is the command's": {
			{"holdfast run job -- sh -c 'echo re\"\"ady; exec sleep 60'; echo code=$?\n", "ready"},
			{"\x03", "code=130"},
		},
		"a command that handles ctrl-c": {
			{"holdfast run job -- sh -c 'trap \"echo no\\\"\\\"t now\" INT; echo re\"\"ady; read a; read a; echo got:$a; exit 3'; echo code=$?\n", "ready"},
			{insist, "not now"},
			{"x\ny\n", "code=3"},
		},
		"ctrl-z and fg": {
			{"holdfast run job -- sh -c 'echo re\"\"ady; read a; echo got:$a; exit 4'; echo code=$?\n", "ready"},
			{"\x1a", "Stopped"},
			{"fg\n", "holdfast run"},
			{"again\n", "got:again"},
		},
		"ctrl-z for too long": {
			{"holdfast run --ttl 6s job -- sh -c 'echo re\"\"ady; read a; echo go\"\"on'\n", "ready"},
			{"\x1a", "Stopped"},
			{"holdfast run -w 20 job -- echo ta''ken\n", "taken"},
			{"fg; echo code=$?\n", "KILL to the command"},
			{"", "code=76"},
		},
		"in the background until it reads": {
			{"holdfast run job -- sh -c 'echo re\"\"ady; read a; echo got:$a' &\n", "ready"},
			{"until jobs | grep Sto''pped; do sleep 0.01; done\n", "Stopped"},
			{"fg\n", "holdfast run"},
			{"at last\n", "got:at last"},
		},
		"another of the pipeline has the terminal": {
			{"holdfast run job -- echo re''ady | sh -c 'cat; read a </dev/tty; echo pager:$a'\n", "ready"},
			{"quit\n", "pager:quit"},
		},
		"in a pipeline, and reads": {
			{"holdfast run job -- sh -c 'echo re\"\"ady; read a; echo got:$a' | cat\n", "ready"},
			{"me\n", "got:me"},
		},
		"a new size": {
			{"holdfast run job -- sh -c 'trap \"stty size\" WINCH; echo re\"\"ady; while :; do sleep 0.05; done'; echo code=$?\n", "ready"},
			{resize, "33 99"},
			{"\x03", "code=130"},
		},
		"a line while it waits": {
			{"holdfast run --label 'so''mebody' job -- sh -c 'echo re\"\"ady; sleep 60' & \n", "ready"},
			{"holdfast run job -- echo never; echo code=$?\n", `waiting for "job": held by somebody, for 1`},
			{"", "0 before us"},
			{"\x03", "code=130"},
			{"kill %1; wait; echo do''ne\n", "done"},
		},
		"an interactive shell": {
			{"holdfast run job -- bash --norc --noprofile -i; echo code=$?\n", ""},
			{"sh -c 'echo in\"\"ner; exec sleep 60'\n", "inner"},
			{"\x1a", "Stopped"},
			{"kill -9 %1; while jobs | grep Sto''pped; do sleep 0.01; done; exit 5\n", "code=5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := startSession(t, s)
			for _, step := range dialog {
				switch step.send {
				case resize:
					if err := pty.Setsize(x.file, &pty.Winsize{Rows: 33, Cols: 99}); err != nil {
						t.Fatal(err)
					}
				case insist:
					x.insist("\x03", step.expect)
					continue
				default:
					x.send(step.send)
				}
				x.expect(step.expect)
			}
			x.send("echo back''again; exit\n") // the shell has the terminal
			x.expect("backagain")
		})
	}
}
