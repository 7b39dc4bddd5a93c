package holdfast

import (
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// logSlow logs a report of a wait or a lease that lasts long, or that it is over.
func logSlow(logger *slog.Logger, e engine.Event, over bool) {
	attributes := []any{"name", shortened(e.Name), "kind", e.Lock.String()}
	var text, took string
	switch {
	case e.Kind == engine.SlowWait && over:
		text, took = "a wait was long and is over", "waited"
	case e.Kind == engine.SlowWait:
		text, took = "a caller waits for long", "waited"
		attributes = append(attributes, "holder", shortened(e.Holder))
		if e.Since != 0 {
			attributes = append(attributes, "since", time.UnixMicro(e.Since))
		}
	case over:
		text, took = "a lease was long and is over", "held"
		attributes = append(attributes, "token", e.Token)
	default:
		text, took = "a lease lasts long", "held"
		attributes = append(attributes, "token", e.Token)
	}
	logger.Warn("holdfast: "+text, append(attributes, took, e.Took, "stack", stackText(e.Stack))...)
}

// callers cuts the frames of this module off the top of a stack.
func callers(stack []uintptr) []uintptr {
	for i := range stack {
		frame, _ := runtime.CallersFrames(stack[i : i+1]).Next()
		if !ours(frame.Function) {
			return stack[i:]
		}
	}
	return stack
}

// ours tells whether a function is of this package or the engine.
func ours(function string) bool {
	const root = "github.com/holdfast-go/holdfast"
	return strings.HasPrefix(function, root+".") || strings.HasPrefix(function, root+"/internal/engine.")
}

// stackText is a stack in one line: the innermost call first.
func stackText(stack []uintptr) string {
	var out []string
	for frames := runtime.CallersFrames(callers(stack)); ; {
		frame, more := frames.Next()
		if frame.Function != "" {
			out = append(out, frame.Function+" "+frame.File+":"+strconv.Itoa(frame.Line))
		}
		if !more {
			return strings.Join(out, "; ")
		}
	}
}
