package logging

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// A blockedHandler is that of a log whose reader has stopped. Each line blocks until the reader
// reads on.
type blockedHandler struct {
	slog.Handler
	readOn chan struct{}
	lines  []string
}

func (h *blockedHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *blockedHandler) Handle(_ context.Context, record slog.Record) error {
	<-h.readOn
	h.lines = append(h.lines, record.Message)
	return nil
}

// A log that reads on after it blocked gets the lines that waited, in order, and how many there was
// no room for.
func TestBackgroundLoggerThatBlocksCountsWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedHandler{Handler: slog.DiscardHandler, readOn: make(chan struct{})}
		logger := Background(slog.New(blocked))
		logger.Info("first")
		synctest.Wait() // it blocks
		for i := range maxLines + 100 {
			logger.Info(fmt.Sprint(i))
		}
		began := time.Now()
		Flush(logger, began.Add(time.Second))
		if took := time.Since(began); took != time.Second {
			t.Errorf("Flush waited %v for a log that blocks, want 1s", took)
		}
		close(blocked.readOn)
		Flush(logger, time.Now().Add(time.Second))
		want := []string{"first"}
		for i := range maxLines {
			want = append(want, fmt.Sprint(i))
		}
		if want = append(want, "holdfast: the log was too slow"); !slices.Equal(blocked.lines, want) {
			t.Errorf("%d lines came, want %d: %q ... %q", len(blocked.lines), len(want), blocked.lines[0],
				blocked.lines[len(blocked.lines)-1])
		}
		Flush(logger, time.Now().Add(time.Second)) // nothing waits
		if took := time.Since(began); took != time.Second {
			t.Errorf("Flush waited %v, with nothing to wait for", took)
		}
	})
}

// A panicHandler panics in all its methods.
type panicHandler struct{ slog.Handler }

func (panicHandler) Enabled(context.Context, slog.Level) bool  { panic("enabled") }
func (panicHandler) Handle(context.Context, slog.Record) error { panic("handle") }
func (panicHandler) WithAttrs([]slog.Attr) slog.Handler        { panic("attrs") }
func (panicHandler) WithGroup(string) slog.Handler             { panic("group") }

func TestBackgroundLoggerThatPanicsIsCaught(t *testing.T) {
	stderr := os.Stderr
	os.Stderr, _ = os.Open(os.DevNull)
	defer func() { os.Stderr = stderr }()
	handler := Background(slog.New(panicHandler{})).Handler()
	if handler.Enabled(t.Context(), slog.LevelError) {
		t.Error("it is enabled")
	}
	for _, h := range []slog.Handler{handler, handler.WithAttrs(nil), handler.WithGroup("g")} {
		_ = h.Handle(t.Context(), slog.Record{})
	}
	Flush(slog.New(handler), time.Now().Add(time.Minute))
}
