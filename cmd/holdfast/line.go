package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"golang.org/x/term"
)

// A line on a terminal says what is waited for, and is gone afterwards.
type line struct{ to *os.File }

// newLine is nil where there is no terminal.
func newLine(to *os.File) *line {
	if to == nil || !term.IsTerminal(int(to.Fd())) {
		return nil
	}
	return &line{to}
}

// show keeps the line fresh until stop is called. mutex is asked, never waited for.
func (l *line) show(name string, held *holdfast.HeldError, mutex *holdfast.Mutex) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var shown sync.WaitGroup
	before, told := held.Waiters, time.Now()
	shown.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for ctx.Err() == nil {
			l.write(status(name, held, before, time.Since(told)))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
			if now := ask(ctx, mutex); now != nil {
				// Whoever joins stands behind us, and we are one of them.
				held, told, before = now, time.Now(), min(before, max(now.Waiters-1, 0))
			}
		}
	})
	return func() {
		cancel()
		shown.Wait()
		_, _ = l.to.WriteString("\r\x1b[K")
	}
}

// ask is who holds now, nil if that is not known.
func ask(ctx context.Context, mutex *holdfast.Mutex) *holdfast.HeldError {
	if ctx.Err() != nil {
		return nil
	}
	lease, err := mutex.TryLock(ctx)
	if lease != nil {
		_ = lease.Release(ctx) // it is free: those in line have their turn
	}
	var held *holdfast.HeldError
	if errors.As(err, &held) {
		return held
	}
	return nil
}

func status(name string, held *holdfast.HeldError, before int, since time.Duration) string {
	remaining := max(held.Remaining-since, 0)
	return fmt.Sprintf("holdfast: waiting for %q: %s, for %v unless renewed; %d before us", name, by(held.Holder), remaining.Round(time.Second), before)
}

// write replaces the line, cut to the width of the terminal.
func (l *line) write(text string) {
	if width, _, err := term.GetSize(int(l.to.Fd())); err == nil && width > 1 {
		if runes := []rune(text); len(runes) >= width {
			text = string(runes[:width-1])
		}
	}
	_, _ = l.to.WriteString("\r" + text + "\x1b[K")
}
