package hold

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
)

// notices are lines for standard error. Their writer never waits, although a reader of standard
// error may be slow.
type notices struct {
	json    bool // --log json
	verbose bool
	lines   chan string
	written chan struct{} // closed after the last line
}

func newNotices(to *os.File, r logOptions) *notices {
	n := &notices{json: r.Log == logJSON, verbose: r.Verbose, lines: make(chan string, 100),
		written: make(chan struct{})}
	go func() {
		defer close(n.written)
		for line := range n.lines {
			_, _ = to.WriteString(line)
		}
	}()
	return n
}

// printf tells what a person may want to know.
func (n *notices) printf(format string, args ...any) {
	text := cli.Trim(fmt.Sprintf(format, args...))
	if n.json {
		n.tell(record{Event: eventNotice, Text: text})
		return
	}
	n.write("holdfast: " + show.Lines(text) + "\n")
}

// tell writes a record with --log json, and its text with --verbose.
func (n *notices) tell(r record) {
	switch {
	case n.json:
		n.write(r.line())
	case n.verbose:
		n.write("holdfast: " + show.Lines(cli.Trim(r.Text)) + "\n")
	}
}

// write drops the line if 100 others are not written yet.
func (n *notices) write(line string) {
	select {
	case n.lines <- line:
	default:
	}
}

// close waits up to 3 s until all lines are written.
func (n *notices) close() {
	close(n.lines)
	select {
	case <-n.written:
	case <-time.After(3 * time.Second): // a machine may stand still for a moment
	}
}

// An outageObserver reports that the server is away, and that a renewal succeeded after that.
type outageObserver struct {
	notices *notices
	away    atomic.Bool
}

// Observe implements holdfast.Observer.
func (o *outageObserver) Observe(e holdfast.Event) {
	switch e.Kind {
	case holdfast.EventRetried:
		if !o.away.Swap(true) {
			if e.Headroom > 0 {
				o.notices.printf("%q: a renewal failed, %v of trust are left: %v", e.Name, roundTime(e.Headroom), e.Err)
			} else {
				o.notices.printf("%q: the server is away, still waiting: %v", e.Name, e.Err)
			}
		}
	case holdfast.EventConfirmed, holdfast.EventRenewed:
		if o.away.Swap(false) {
			o.notices.printf("%q: renewed", e.Name)
		}
	case holdfast.EventGranted:
		o.away.Store(false)
	}
}
