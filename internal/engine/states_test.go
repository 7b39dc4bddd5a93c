package engine

import (
	"slices"
	"testing"
)

// Every transition of the package document's table is made, and all others are refused.
func TestHoldStateTransitions(t *testing.T) {
	allowed := map[holdState][]holdState{
		holdHeld:        {holdDowngrading, holdDetached, holdReleasing, holdLost, holdCleared},
		holdDowngrading: {holdHeld, holdSharing, holdReleasing, holdLost, holdCleared},
		holdSharing:     {holdDetached, holdReleasing, holdLost, holdCleared},
		holdDetached:    nil,
		holdReleasing:   nil,
		holdLost:        {holdCleared},
		holdCleared:     nil,
	}
	if len(allowed) != len(holdMoves) {
		t.Fatalf("%d states, want %d", len(holdMoves), len(allowed))
	}
	for from, next := range allowed {
		for to := range allowed {
			h := &hold{state: from}
			moved, want := h.to(to), slices.Contains(next, to)
			if moved != want {
				t.Errorf("%v to %v: %t, want %t", from, to, moved, want)
			}
			if is := map[bool]holdState{true: to, false: from}[want]; h.state != is {
				t.Errorf("%v to %v: it is %v, want %v", from, to, h.state, is)
			}
			if live := h.isLive(); live != (h.state == holdHeld || h.state == holdDowngrading ||
				h.state == holdSharing) {
				t.Errorf("%v: live is %t", h.state, live)
			}
		}
	}
}

// An attempt that holds or was abandoned stays what it is; before that, every answer may come.
func TestAttemptStateTransitions(t *testing.T) {
	open := []attemptState{attemptNew, attemptQueued, attemptHeld, attemptAbandoned}
	allowed := map[attemptState][]attemptState{
		attemptNew:       open,
		attemptQueued:    open,
		attemptHeld:      nil,
		attemptAbandoned: nil,
	}
	if len(allowed) != len(attemptMoves) {
		t.Fatalf("%d states, want %d", len(attemptMoves), len(allowed))
	}
	for from, next := range allowed {
		for to := range allowed {
			a := &attempt{state: from}
			moved, want := a.to(to), slices.Contains(next, to)
			if moved != want {
				t.Errorf("%v to %v: %t, want %t", from, to, moved, want)
			}
			if is := map[bool]attemptState{true: to, false: from}[want]; a.state != is {
				t.Errorf("%v to %v: it is %v, want %v", from, to, a.state, is)
			}
		}
	}
}
