package holdfast_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/telemetry"
)

// A requests is an observer that counts requests, and panics if it is told to.
type requests struct {
	mu     sync.Mutex
	of     map[telemetry.Request]int
	panics bool
}

func (*requests) Observe(holdfast.Event) {}

func (r *requests) ObserveRequest(request telemetry.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[telemetry.Request]int{}
	}
	r.of[request]++
	if r.panics {
		panic("observer")
	}
}

// A moody store answers at once, and each first try of a script as an old server would that has no
// scripts yet.
type moody struct {
	instant
	sent int
	fail error
}

func (*moody) Renew(string) {}

func (m *moody) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	m.sent += len(commands)
	replies := m.instant.Do(ctx, node, commands)
	for i, command := range commands {
		switch {
		case m.fail != nil:
			replies[i] = store.Reply{Err: m.fail}
		case command[0] == "EVALSHA":
			replies[i] = store.Reply{Refused: "NOSCRIPT No matching script."}
		}
	}
	return replies
}

func TestRequestsAreCounted(t *testing.T) {
	for _, panics := range []bool{false, true} {
		seen, server := &requests{panics: panics}, &moody{}
		client, err := holdfast.New(server, &holdfast.Config{Observer: seen, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := client.Mutex("order:42").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
		server.fail = errors.New("gone")
		_, err = client.Mutex("order:42").TryLock(t.Context())
		if !errors.Is(err, holdfast.ErrUnavailable) {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		want := map[telemetry.Request]int{
			{Op: "time", Outcome: "answered"}: 1,
			{Op: "lock", Outcome: "refused"}:  1, {Op: "lock", Outcome: "answered"}: 1, {Op: "lock", Outcome: "no_answer"}: 1,
			{Op: "release", Outcome: "refused"}: 1, {Op: "release", Outcome: "answered"}: 1,
		}
		cleanups := seen.of[telemetry.Request{Op: "release", Outcome: "no_answer"}]
		delete(seen.of, telemetry.Request{Op: "release", Outcome: "no_answer"}) // what the last call may have won is given back, as often as that fails
		if !maps.Equal(seen.of, want) {
			t.Errorf("counted %v, want %v", seen.of, want)
		}
		if server.sent < 6+cleanups {
			t.Errorf("the store was sent %d requests, and %d were counted", server.sent, 6+cleanups)
		}
	}
}

// A deaf observer counts no requests.
type deaf struct{}

func (deaf) Observe(holdfast.Event) {}

// Nothing is allocated for an observer that counts requests.
func TestCountingRequestsAllocatesNothing(t *testing.T) {
	pair := func(o holdfast.Observer) float64 {
		client, err := holdfast.New(instant{}, &holdfast.Config{Observer: o})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		mutex := client.Mutex("order:42")
		return testing.AllocsPerRun(200, func() {
			lease, err := mutex.Lock(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if err := lease.Release(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if without, with := pair(deaf{}), pair(&requests{}); with != without {
		t.Errorf("a pair makes %v allocations, and %v if requests are counted", without, with)
	}
}

// A traced observer has a text for each caller.
type traced struct {
	requests
	text string
}

func (t *traced) Trace(context.Context) string { return t.text }

// Several observers are told of all, and the first text for a caller counts.
func TestObserversAreAllTold(t *testing.T) {
	var kinds []holdfast.EventKind
	first, second := &traced{text: ""}, &traced{text: "here"}
	several := holdfast.Observers(nil, observing(func(e holdfast.Event) { kinds = append(kinds, e.Kind) }), first, second, &traced{text: "there"})
	client, err := holdfast.New(&moody{}, &holdfast.Config{Observer: several})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Mutex("order:42").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if want := []holdfast.EventKind{holdfast.EventGranted, holdfast.EventReleased}; !slices.Equal(kinds, want) {
		t.Errorf("told of %v, want %v", kinds, want)
	}
	if len(first.of) == 0 || !maps.Equal(first.of, second.of) {
		t.Errorf("one was told of the requests %v, the next of %v", first.of, second.of)
	}
	if text := several.(telemetry.Tracer).Trace(t.Context()); text != "here" {
		t.Errorf("the caller belongs to %q, want here", text)
	}
	if none, one := holdfast.Observers(nil, nil), holdfast.Observers(nil, first); none != nil || one != first {
		t.Errorf("none is %v, and one is %v", none, one)
	}
}
