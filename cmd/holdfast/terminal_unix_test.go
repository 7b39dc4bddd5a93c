//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// A step of a dialog types a text, and waits for another one.
type dialogStep struct{ send, expect string }

// Steps that type no line.
const (
	ctrlC  = "\x03"
	ctrlZ  = "\x1a"
	resize = "(a new size of the terminal)"
)

// do does a step, and waits until its text is on the screen once more than before. The text after
// no step may be there already.
func (s dialogStep) do(x *tmux) {
	x.t.Helper()
	seen := func() int { return strings.Count(x.do("capture-pane", "-p"), s.expect) }
	before := seen()
	switch s.send {
	case "":
		before = 0
	case ctrlC:
		x.press("C-c")
	case ctrlZ:
		x.press("C-z")
	case resize:
		x.do("resize-window", "-x", "99", "-y", "33")
	default:
		for line := range strings.Lines(s.send) {
			x.enter(strings.TrimSpace(line))
		}
	}
	if s.expect != "" && !holdsSoon(func() bool { return seen() > before }) {
		x.t.Fatalf("no %q, but\n%s", s.expect, x.do("capture-pane", "-p"))
	}
}

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
			{ctrlC, "code=130"},
		},
		"a command that handles ctrl-c": {
			{"holdfast run job -- sh -c 'trap \"echo no\\\"\\\"t now; n=1\" INT; echo re\"\"ady; until test \"$n\"; do sleep 0.05; done; read a; exit $a'; echo code=$?\n", "ready"},
			{ctrlC, "not now"},
			{"3\n", "code=3"},
		},
		"ctrl-z and fg": {
			{"holdfast run job -- sh -c 'echo re\"\"ady; read a; echo got:$a; exit 4'; echo code=$?\n", "ready"},
			{ctrlZ, "Stopped"},
			{"fg\n", "holdfast run"},
			{"again\n", "got:again"},
		},
		"ctrl-z for too long": {
			{"holdfast run --ttl 6s job -- sh -c 'echo re\"\"ady; read a; echo go\"\"on'\n", "ready"},
			{ctrlZ, "Stopped"},
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
			{ctrlC, "code=130"},
		},
		"a line while it waits": {
			{"holdfast run --label 'so''mebody' job -- sh -c 'echo re\"\"ady; sleep 60' & \n", "ready"},
			{"holdfast run job -- echo never; echo code=$?\n", `waiting for "job": held by somebody, for 1`},
			{"", "0 before us"},
			{ctrlC, "code=130"},
			{"kill %1; wait; echo do''ne\n", "done"},
		},
		"an interactive shell": {
			{"holdfast run job -- bash --norc --noprofile -i; echo code=$?\n", ""},
			{"sh -c 'echo in\"\"ner; exec sleep 60'\n", "inner"},
			{ctrlZ, "Stopped"},
			{"kill -9 %1; while jobs | grep Sto''pped; do sleep 0.01; done; exit 5\n", "code=5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := startTmux(t, s, 120, 40)
			for _, step := range dialog {
				step.do(x)
			}
			dialogStep{"echo back''again\n", "backagain"}.do(x) // the shell has the terminal
		})
	}
}
