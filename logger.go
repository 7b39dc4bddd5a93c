package holdfast

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// A guardedHandler is the handler of a user's logger. The library logs from goroutines on which
// leases depend, so a panic of the handler must not end them. The first panic is told to standard
// error, as the logger cannot be told.
type guardedHandler struct {
	slog.Handler
	told *sync.Once
}

// guarded returns a logger that does not panic.
func guarded(logger *slog.Logger) *slog.Logger {
	return slog.New(guardedHandler{logger.Handler(), new(sync.Once)})
}

// recovered ends a panic. It must be deferred itself.
func (g guardedHandler) recovered() {
	if panicked := recover(); panicked != nil {
		g.told.Do(func() { fmt.Fprintln(os.Stderr, "holdfast: Config.Logger panicked:", panicked) })
	}
}

// Enabled implements slog.Handler.
func (g guardedHandler) Enabled(ctx context.Context, level slog.Level) bool {
	defer g.recovered()
	return g.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (g guardedHandler) Handle(ctx context.Context, record slog.Record) error {
	defer g.recovered()
	return g.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (g guardedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return guardedHandler{g.Handler.WithAttrs(attrs), g.told}
}

// WithGroup implements slog.Handler.
func (g guardedHandler) WithGroup(name string) slog.Handler {
	return guardedHandler{g.Handler.WithGroup(name), g.told}
}
