package hold

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// A heldFacts is what JSON tells of what keeps others out.
type heldFacts struct {
	Holder    string         `json:"holder,omitempty"`
	Since     string         `json:"since,omitempty"`
	Remainder lockinfo.State `json:"remainder,omitempty"`
	BrokenBy  string         `json:"broken_by,omitempty"`
	Waiters   *int           `json:"waiters,omitempty"`
	Left      *float64       `json:"left_seconds,omitempty"`
}

// newHeldFacts returns what is known; nothing of nil.
func newHeldFacts(held *holdfast.HeldError) (f heldFacts) {
	if held == nil {
		return f
	}
	f = heldFacts{Holder: held.Holder, Remainder: held.Remainder, BrokenBy: held.BrokenBy, Waiters: &held.Waiters}
	if !held.Since.IsZero() {
		f.Since = held.Since.UTC().Format(time.RFC3339Nano)
	}
	if held.Remaining > 0 {
		f.Left = secondsOf(held.Remaining)
	}
	return f
}

// heldOf returns what a try of the name would have found.
func heldOf(info lockinfo.Info) *holdfast.HeldError {
	hold, _ := info.Holder()
	held := &holdfast.HeldError{Name: info.Name, Kind: string(info.Kind), Holders: info.Holders, Waiters: info.Waiters,
		Remaining: hold.Remaining}
	if hold.Remainder() {
		held.Remainder, held.BrokenBy = hold.State, hold.By
		return held
	}
	held.Holder, held.Owner, held.Token, held.Since = hold.Label, hold.Owner, hold.Token, hold.Since
	held.Ticket = hold.Ticket
	return held
}

// keptBy says what keeps others out. After a release, that can be the rest of a min hold and no
// holder.
func keptBy(held *holdfast.HeldError) string {
	switch {
	case held.Holder != "":
		return "held by " + show.Text(held.Holder)
	case held.Remainder == lockinfo.StateBroken:
		return "broken by " + show.Text(held.BrokenBy) + ", and kept from others"
	case held.Remainder == lockinfo.StateMinHold:
		return "kept from others by a min hold"
	}
	return "kept from others"
}

// aroundText says that the holder is the run whose command this process belongs to, if so.
func aroundText(held *holdfast.HeldError) string {
	if held == nil || held.Token == 0 || tokensAround()[held.Name] != held.Token {
		return ""
	}
	text := fmt.Sprintf("%q is held by the run around this one", held.Name)
	if held.Kind != string(lockinfo.KindSemaphore) {
		text += "; holdfast run --owner \"$HOLDFAST_OWNER\" enters it"
	}
	return text
}

// maxAround is how many names of the runs around it a run says that it waits under: as many as
// holdfast.WithUnder takes.
const maxAround = 8

// tokensAround returns the tokens of the runs around this process, by name. A text that no run
// wrote says nothing.
func tokensAround() (tokens map[string]int64) {
	if err := json.Unmarshal([]byte(os.Getenv("HOLDFAST_UNDER")), &tokens); err != nil || len(tokens) > maxAround {
		return nil
	}
	return tokens
}

// tokensWithin returns the tokens for the runs inside of this one: those of its lease, and those of
// the runs around it as far as there is room.
func tokensWithin(lease *holdfast.Lease) map[string]int64 {
	within := make(map[string]int64)
	for _, tokens := range []map[string]int64{lease.Tokens(), tokensAround()} {
		for _, name := range slices.Sorted(maps.Keys(tokens)) {
			if _, inner := within[name]; !inner && len(within) < maxAround {
				within[name] = tokens[name]
			}
		}
	}
	return within
}
