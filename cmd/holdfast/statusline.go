package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/holdfast-go/holdfast"
	"golang.org/x/term"
)

// A statusLine on a terminal says what the command waits for. It disappears after the wait.
type statusLine struct{ to *os.File }

// newStatusLine returns nil if there is no terminal.
func newStatusLine(to *os.File) *statusLine {
	if terminal(to) == nil {
		return nil
	}
	return &statusLine{to}
}

// terminal returns the file behind a stream if it is a terminal, and else nil.
func terminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && f != nil && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// show keeps the line up to date until stop is called. It asks for mutex and never waits for it.
func (l *statusLine) show(name string, held *holdfast.HeldError, mutex *holdfast.Mutex) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var shown sync.WaitGroup
	before, asked := held.Waiters, time.Now()
	shown.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for ctx.Err() == nil {
			l.write(status(name, held, before, time.Since(asked)))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
			if now := presentHolder(ctx, mutex); now != nil {
				// The waiters include this process. New waiters stand behind it.
				held, asked, before = now, time.Now(), min(before, max(now.Waiters-1, 0))
			}
		}
	})
	return func() {
		cancel()
		shown.Wait()
		_, _ = l.to.WriteString("\r\x1b[K")
	}
}

// presentHolder returns nil if the holder is not known.
func presentHolder(ctx context.Context, mutex *holdfast.Mutex) *holdfast.HeldError {
	if ctx.Err() != nil {
		return nil
	}
	lease, err := mutex.TryLock(ctx)
	if lease != nil {
		_ = lease.Release(ctx) // the lock is free: the waiters in the queue come first
	}
	var held *holdfast.HeldError
	if errors.As(err, &held) {
		return held
	}
	return nil
}

func status(name string, held *holdfast.HeldError, before int, since time.Duration) string {
	remaining := max(held.Remaining-since, 0)
	return fmt.Sprintf("holdfast: waiting for %q: %s, for %v unless renewed; %d before us",
		name, heldBy(held.Holder), remaining.Round(time.Second), before)
}

// write replaces the line. A text that is wider than the terminal would leave a second line behind.
func (l *statusLine) write(text string) {
	if width, _, err := term.GetSize(int(l.to.Fd())); err == nil && width > 1 {
		text = ansi.Truncate(text, width-1, "")
	}
	_, _ = l.to.WriteString("\r" + text + "\x1b[K")
}
