package quorum

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A heard is a sink that remembers.
type heard struct {
	mu     sync.Mutex
	nudges map[protocol.ID][]time.Duration
	breaks map[protocol.ID]int
}

// listen opens a subscription at all masters. Listen returns when a majority is subscribed.
func listen(t *testing.T, servers []wire.Store, p *Protocol) *heard {
	t.Helper()
	h := &heard{nudges: map[protocol.ID][]time.Duration{}, breaks: map[protocol.ID]int{}}
	listening, err := p.Listen(t.Context(), h)
	fatal.If(t, err)
	t.Cleanup(listening.Close)
	for _, s := range servers {
		until(t, "a master knows the subscription", func() bool {
			return command(t, s, "PUBSUB", "NUMSUB", p.channel).([]any)[1] == int64(1)
		})
	}
	return h
}

// Granted implements protocol.Sink.
func (*heard) Granted(protocol.Grant) {}

// Gap implements protocol.Sink.
func (*heard) Gap() {}

// Recall implements protocol.Sink.
func (*heard) Recall(protocol.ID) {}

// Broken implements protocol.Sink.
func (h *heard) Broken(id protocol.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.breaks[id]++
}

// Nudge implements protocol.Sink.
func (h *heard) Nudge(id protocol.ID, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nudges[id] = append(h.nudges[id], after)
}

// toldTo returns when an id was told to ask, each time, and how often that its hold was broken.
func (h *heard) toldTo(n int) (nudges []time.Duration, breaks int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nudges[ticketID(n)], h.breaks[ticketID(n)]
}

// A logger remembers what it was told.
type logger struct {
	mu   sync.Mutex
	text strings.Builder
}

// newLogger makes a logger, and what a protocol takes.
func newLogger() (*logger, *slog.Logger) {
	l := new(logger)
	return l, slog.New(slog.NewTextHandler(l, nil))
}

// Write implements io.Writer.
func (l *logger) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// String returns all lines.
func (l *logger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logger) count(text string) int { return strings.Count(l.String(), text) }
