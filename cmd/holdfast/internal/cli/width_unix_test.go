//go:build unix

package cli

import (
	"testing"

	"github.com/creack/pty"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// Help on a terminal is as wide as that, and never narrower than can be read.
func TestHelpIsAsWideAsTheTerminal(t *testing.T) {
	far, near, err := pty.Open()
	fatal.If(t, err)
	defer far.Close()
	defer near.Close()
	for columns, want := range map[uint16]int{120: 120, 60: 60, 10: 40, 0: PlainWidth} {
		fatal.If(t, pty.Setsize(near, &pty.Winsize{Rows: 24, Cols: columns}))
		if got := Width(near); got != want {
			t.Errorf("%d columns: %d, want %d", columns, got, want)
		}
	}
}
