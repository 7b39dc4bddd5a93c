package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/deadlock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/quorum"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Every error says "holdfast:" once, in front, however errors nest. It names the server that was
// asked, if it is known.
func TestTexts(t *testing.T) {
	refused := errors.New("OOM no memory")
	failure := &protocol.Failure{
		Op: "lock", Name: "n", Node: "10.0.0.1:6379", Reason: protocol.OutOfMemory, Err: refused}
	unknown := &protocol.Failure{
		Op: "release", Name: "n", Reason: protocol.NoAnswer, Unknown: true, Err: context.DeadlineExceeded}
	lost := lostError(engine.Lost{Name: "n", Token: 7, Why: engine.Expired, Err: failure})
	none := &protocol.Failure{
		Op: "lock", Name: "n", Reason: protocol.OutOfMemory, Err: &quorum.NoMajority{Need: 2, Nodes: []protocol.Node{
			{Name: "node 1", Err: &protocol.Failure{
				Op: "lock", Name: "n", Node: "node 1", Reason: protocol.OutOfMemory, Err: refused}},
			{Name: "node 2", Err: ErrClosed}, {Name: "node 3", Counts: true, Answer: "free"},
		}}}
	wait := func(err error, answered bool, failure error) error {
		return &engine.WaitFailure{Err: err, Waited: time.Second, Answered: answered, Failure: failure}
	}
	for name, c := range map[string]struct {
		err  error
		want string
		is   []error
	}{
		"store": {failure, `lock "n" at 10.0.0.1:6379: out of memory (not applied): OOM no memory`,
			[]error{refused, ErrUnavailable}},
		"store, server not known": {
			unknown, `release "n": no answer (may have been applied): context deadline exceeded`,
			[]error{ErrUnavailable},
		},
		"foreign key": {
			&protocol.Foreign{Op: "lock", Name: "n", Node: "10.0.0.1:6379", Key: "k", Found: "a list", Want: "a mutex"},
			`lock "n" at 10.0.0.1:6379: foreign key (not applied): key "k" is a list, not a mutex`, nil,
		},
		"uncertain": {
			&engine.UncertainError{Err: unknown},
			`not confirmed by the server: release "n": no answer (may have been applied): context deadline exceeded`,
			[]error{ErrUncertain, ErrUnavailable},
		},
		"lost by a process that stood still": {
			lostError(engine.Lost{Name: "n", Token: 7, Why: engine.Expired, Late: 12345678 * time.Microsecond}),
			`lost "n" (token 7): no renewal was confirmed in time, as this process was 12.346s late with its own`,
			[]error{ErrLost},
		},
		"lost": {
			lost, `lost "n" (token 7): no renewal was confirmed in time: lock "n" at 10.0.0.1:6379: out of memory (not applied): OOM no memory`,
			[]error{ErrLost, refused},
		},
		"wait of an evicted waiter": {
			wait(&protocol.Evicted{By: "OP"}, true, nil), `waited 1s for "n": taken out of the queue by "OP"`, nil,
		},
		"wait in a deadlock": {
			wait(&deadlock.Cycle{Members: make([]deadlock.Member, 1)}, true, nil),
			`waited 1s for "n": deadlock: "" holds "" and waits for ""`, nil,
		},
		"wait, and the server is away": {
			wait(context.DeadlineExceeded, false, failure),
			`waited 1s for "n": context deadline exceeded; lock "n" at 10.0.0.1:6379: out of memory (not applied): OOM no memory`,
			[]error{context.DeadlineExceeded, ErrUnavailable, refused},
		},
		"wait whose time was over, and the server is away": {
			wait(protocol.ErrWaitOver, false, unknown),
			`waited 1s for "n": the time to wait is over; release "n": no answer (may have been applied): context deadline exceeded`,
			[]error{ErrUnavailable},
		},
		"wait whose time was over, and another holds": {
			&engine.WaitFailure{Kind: protocol.Mutex, Err: protocol.ErrWaitOver, Waited: time.Second, Answered: true,
				Answer: protocol.Answer{
					Status: protocol.Queued, Holder: protocol.Party{Label: "me"}, Token: 7, Holders: 1}},
			`waited 1s for "n", held by "me" since unknown: the time to wait is over`,
			[]error{ErrWaitOver, ErrHeld},
		},
		"wait that ends while a hold is broken": {
			&engine.WaitFailure{Kind: protocol.Mutex, Err: context.Canceled, Waited: time.Second, Answered: true,
				Answer: protocol.Answer{Status: protocol.Queued, Holders: 1, Left: protocol.HoldBroken, By: "ops"}},
			`waited 1s for "n", broken by "ops", and kept from others: context canceled`, []error{context.Canceled},
		},
		"wait without any answer": {
			wait(context.Canceled, false, nil), `waited 1s for "n": context canceled; server unavailable`,
			[]error{context.Canceled, ErrUnavailable},
		},
		"wait that a deadlock ended": {
			wait(&deadlock.Cycle{Members: []deadlock.Member{
				{Holds: "m", Waits: "n", Place: protocol.Place{Party: protocol.Party{Label: "a"}}},
				{Holds: "n", Waits: "m", Place: protocol.Place{Party: protocol.Party{Label: "b"}}},
			}}, true, failure),
			`waited 1s for "n": deadlock: "a" holds "m" and waits for "n", "b" holds "n" and waits for "m"`, nil,
		},
		"wait that a loss ended": {
			wait(protocol.EndOf(ended(lost)), true, none),
			`waited 1s for "n": context canceled: lost "n" (token 7): no renewal was confirmed in time: lock "n" at 10.0.0.1:6379: ` +
				`out of memory (not applied): OOM no memory; lock "n": no majority, 2 of 3 nodes are needed: ` +
				`node 1: out of memory (not applied): OOM no memory; node 2: client closed; node 3: free`,
			[]error{context.Canceled, ErrLost, refused},
		},
		"wait that an error around a loss ended": {
			wait(protocol.EndOf(ended(fmt.Errorf("cannot bill: %w", lost))), true, nil),
			`waited 1s for "n": context canceled: cannot bill: lost "n" (token 7): no renewal was confirmed in time: ` +
				`lock "n" at 10.0.0.1:6379: out of memory (not applied): OOM no memory`,
			[]error{context.Canceled, ErrLost, refused},
		},
		"part of a group": {&engine.PartError{Name: "n", Err: &engine.UncertainError{Err: failure}},
			`not confirmed by the server: lock "n" at 10.0.0.1:6379: out of memory (not applied): OOM no memory`,
			[]error{ErrUncertain, refused}},
		"a store that is closed": {
			&protocol.Failure{Op: "look", Name: "n", Reason: protocol.Unreachable, Err: ErrClosed},
			`look "n": unreachable (not applied): client closed`, []error{ErrClosed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := publicError("lock", "n", c.err)
			if got := err.Error(); got != prefix+c.want {
				t.Errorf("got  %s\nwant %s", got, prefix+c.want)
			}
			for _, want := range c.is {
				if !errors.Is(err, want) {
					t.Errorf("it does not match %q", want)
				}
			}
			if errors.Is(err, ErrWaitOver) &&
				(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
				t.Error("it matches an error of the context, which did not end")
			}
			if again := publicError("lock", "n", err); strings.Count(again.Error(), prefix) != 1 {
				t.Errorf("made public twice: %s", again)
			}
			if status := newMaster(protocol.Node{Name: "node 1"}, err).String(); strings.Contains(status, prefix) {
				t.Errorf("of a node: %s", status)
			}
		})
	}
}

func ended(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

// A HeldError names the holder, or what keeps others out.
func TestHeldError(t *testing.T) {
	since := time.Now().Add(-time.Minute)
	for want, held := range map[string]HeldError{
		`mutex "n" is held by "a" since ` + since.Format(time.RFC3339) +
			`, 2s left unless renewed, 1 waiting`: {Kind: "mutex", Name: "n", Holder: "a",
			Since: since, Holders: 1, Waiters: 1, Remaining: 2 * time.Second},
		`semaphore "n" is held by "a" since ` + since.Format(time.RFC3339) +
			`, with 2 more, 2s left unless renewed, 0 waiting`: {Kind: "semaphore",
			Name: "n", Holder: "a", Since: since, Holders: 3, Remaining: 2 * time.Second},
		`mutex "n" is kept from others for another 2s`: {
			Kind: "mutex", Name: "n", Holders: 1, Remaining: 2 * time.Second},
		`mutex "n" is broken by "ops", and kept from others for another 2s, 1 waiting`: {Kind: "mutex", Name: "n",
			Holders: 1, Waiters: 1, Remaining: 2 * time.Second, Remainder: lockinfo.StateBroken, BrokenBy: "ops"},
		`mutex "n" is released, and kept from others by its min hold for another 2s`: {Kind: "mutex", Name: "n",
			Holders: 1, Remaining: 2 * time.Second, Remainder: lockinfo.StateMinHold},
		`mutex "n" is held by "a" (a ticket) since unknown, 2s left unless renewed`: {Kind: "mutex", Name: "n",
			Holder: "a", Holders: 1, Remaining: 2 * time.Second, Ticket: true},
		`mutex "n" is held by "a" since unknown, 1 waiting`: {
			Kind: "mutex", Name: "n", Holder: "a", Holders: 1, Waiters: 1, Remaining: -1},
		`mutex "n" is held by nobody, 0 waiting`: {Kind: "mutex", Name: "n"},
		`latch "n" is set, and its count is 2`:   {Kind: "latch", Name: "n", Holders: 2},
	} {
		if got := held.Error(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTicketErrorTexts(t *testing.T) {
	for want, err := range map[string]*TicketError{
		`holdfast: ticket of "n": the hold was broken by "B"`:           {Name: "n", Reason: TicketBroken, By: "B"},
		`holdfast: ticket of "n": it is of clients with another prefix`: {Name: "n", Reason: TicketPrefix},
		`holdfast: ticket: it has another format`:                       {Reason: TicketFormat},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err.Error(), want)
		}
	}
}
