package engine

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A predecessor is the holder that a caller waited for, as the caller last knew it.
type predecessor struct {
	answer protocol.Answer
	caller context.Context // of that holder, if it is of this process; else nil
}

// predecessor is the holder that the attempt waited for. Nil: it did not wait, or nothing is told.
// Only the goroutine that runs the attempt calls it.
func (a *attempt) predecessor() *predecessor {
	if a.engine.config.Observe == nil || !a.call.contended || !a.answered {
		return nil
	}
	return &predecessor{a.answer, a.holderContext}
}

// predecessor is the present holder, for the goroutine that its hold passes to. Nil: nothing is
// told. The engine's mutex is held.
func (h *hold) predecessor() *predecessor {
	if h.lock.engine.config.Observe == nil {
		return nil
	}
	answer := h.asAnswer()
	answer.Token = h.tenure.token
	return &predecessor{answer, h.tenure.inlineLease.parent}
}

// addHolder adds to an event the holder that its caller was last told of. The engine's mutex is not
// held.
func (e *Engine) addHolder(event *Event, last predecessor) {
	holder := &last.answer.Holder
	event.Holder, event.HolderToken, event.HolderTrace = holder.Label, last.answer.Token, holder.Trace
	if last.caller != nil {
		event.HolderTrace = e.traceOf(last.caller)
	}
}

// traceOf is where a caller belongs in a trace; empty: nowhere, or nothing is traced. The engine's
// mutex is not held.
func (e *Engine) traceOf(ctx context.Context) (trace string) {
	if e.config.Trace == nil {
		return ""
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			e.config.Logger.Error("holdfast: the observer panicked", "panic", panicked)
		}
	}()
	return e.config.Trace(ctx)
}
