package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/board"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/lottery"
	"golang.org/x/term"
)

// A stage is where the demo is shown: a board on a terminal, lines of text elsewhere.
type stage struct {
	view  lottery.View
	errs  io.Writer // for workers that crash
	leave func()
}

// stage opens one. The context ends when somebody leaves the board.
func (d *Demo) stage(ctx context.Context, server string) (context.Context, *stage) {
	in, out, ok := d.terminal()
	if !ok {
		return ctx, &stage{view: lottery.Plain(d.Out), errs: d.Err, leave: func() {}}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b := board.Open(in, out, board.Facts{Rounds: d.Rounds, Server: server, TTL: d.TTL, Workers: d.Workers}, func() { cancel(errInterrupted) })
	later := &kept{}
	return ctx, &stage{view: b.View, errs: later, leave: func() {
		b.Close()
		cancel(nil)
		_, _ = io.WriteString(d.Out, b.Story())
		_, _ = later.WriteTo(d.Err)
	}}
}

// terminal is where a board can be shown.
func (d *Demo) terminal() (in, out *os.File, ok bool) {
	in, isIn := d.In.(*os.File)
	out, isOut := d.Out.(*os.File)
	ok = isIn && isOut && !d.Plain && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
	return in, out, ok
}

// kept keeps what would spoil the board until it is gone.
type kept struct {
	mu sync.Mutex
	bytes.Buffer
}

// Write implements io.Writer.
func (h *kept) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Buffer.Write(p)
}
