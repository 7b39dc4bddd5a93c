package hold

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
	"golang.org/x/term"
)

// A statusLine on a terminal says what the command waits for. It disappears after the wait.
type statusLine struct{ to *os.File }

// show keeps the line up to date until stop is called. It asks the server and takes nothing.
func (l *statusLine) show(client *holdfast.Client, held *holdfast.HeldError) (stop func()) {
	if l == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var shown sync.WaitGroup
	line, asked := *held, time.Now()
	shown.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for ctx.Err() == nil {
			l.write(statusText(&line, time.Since(asked)))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
			if info, err := client.Inspect(ctx, held.Name); err == nil {
				updateStatus(&line, info)
				asked = time.Now()
			}
		}
	})
	return func() {
		cancel()
		shown.Wait()
		l.clear()
	}
}

func (l *statusLine) clear() {
	if l != nil {
		_, _ = l.to.WriteString("\r\x1b[K")
	}
}

// updateStatus changes what is shown to what the server says now. Waiters that came later stand
// behind this process, which knows its own place by host and process.
func updateStatus(line *holdfast.HeldError, info lockinfo.Info) {
	before := line.Waiters
	*line = *heldOf(info)
	host, _ := os.Hostname()
	for _, w := range info.Queue {
		if w.Host == host && w.PID == os.Getpid() {
			line.Waiters = max(w.Place-1, 0)
			return
		}
	}
	line.Waiters = min(before, max(info.Waiters-1, 0))
}

func statusText(held *holdfast.HeldError, since time.Duration) string {
	text := fmt.Sprintf("holdfast: waiting for %q: %s", held.Name, keptBy(held))
	if held.Holder != "" {
		text += ","
	}
	text += fmt.Sprintf(" for %v", max(held.Remaining-since, 0).Round(time.Second))
	if held.Holder != "" {
		text += " unless renewed"
	}
	return text + fmt.Sprintf("; %d before us", held.Waiters)
}

// write replaces the line. A text that is wider than the terminal would leave a second line behind.
func (l *statusLine) write(text string) {
	if l == nil {
		return
	}
	if width, _, err := term.GetSize(int(l.to.Fd())); err == nil && width > 1 {
		text = ansi.Truncate(text, width-1, "")
	}
	_, _ = l.to.WriteString("\r" + text + "\x1b[K")
}
