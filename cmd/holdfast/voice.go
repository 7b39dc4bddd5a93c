package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A voice writes lines to standard error for those who must not wait until somebody reads them.
type voice struct {
	lines chan string
	done  chan struct{}
}

func newVoice(to *os.File) *voice {
	v := &voice{lines: make(chan string, 100), done: make(chan struct{})}
	go func() {
		defer close(v.done)
		for line := range v.lines {
			_, _ = to.WriteString(line)
		}
	}()
	return v
}

// say never waits; what does not fit is not said.
func (v *voice) say(format string, args ...any) {
	select {
	case v.lines <- "holdfast: " + trimmed(fmt.Sprintf(format, args...)) + "\n":
	default:
	}
}

// close waits until all is written, but not for long.
func (v *voice) close() {
	close(v.lines)
	select {
	case <-v.done:
	case <-time.After(3 * time.Second): // a machine may stand still for a moment
	}
}

// A watcher tells once when the server goes away, and once when it is back.
type watcher struct {
	run   *Run
	voice *voice
	away  atomic.Bool
}

// Observe implements holdfast.Observer.
func (w *watcher) Observe(e holdfast.Event) {
	switch e.Kind {
	case holdfast.EventRetried:
		if !w.away.Swap(true) {
			if e.Headroom > 0 {
				w.voice.say("%q: a renewal failed, %v of trust are left: %v", e.Name, round(e.Headroom), e.Err)
			} else {
				w.voice.say("%q: the server is away, still waiting: %v", e.Name, e.Err)
			}
		}
	case holdfast.EventRenewed:
		if w.away.Swap(false) {
			w.voice.say("%q: renewed", e.Name)
		}
	case holdfast.EventGranted:
		w.away.Store(false)
	}
}
