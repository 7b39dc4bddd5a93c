package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// A child is a process of a step in this process: orders go in, reports come out.
type child struct {
	t       *testing.T
	orders  *json.Encoder
	reports *json.Decoder
}

// run lets Work run with a role until the test is over.
func run(t *testing.T, r role) *child {
	t.Helper()
	in, orders := io.Pipe()
	reports, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Work(context.Background(), in, out)
		out.Close()
	}()
	t.Cleanup(func() {
		orders.Close()
		go func() { _, _ = io.Copy(io.Discard, reports) }()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	c := &child{t, json.NewEncoder(orders), json.NewDecoder(reports)}
	if err := c.orders.Encode(r); err != nil {
		t.Fatal(err)
	}
	c.next(reportAnswer)
	return c
}

// do gives an order and returns the reports up to its answer.
func (c *child) do(order string) (all []report) {
	c.t.Helper()
	if err := c.orders.Encode(order); err != nil {
		c.t.Fatal(err)
	}
	return c.next(reportAnswer)
}

// next returns the reports up to one of a kind.
func (c *child) next(kind string) (all []report) {
	c.t.Helper()
	for {
		var r report
		if err := c.reports.Decode(&r); err != nil {
			c.t.Fatalf("%v after %+v", err, all)
		}
		if all = append(all, r); r.Kind == kind {
			return all
		}
	}
}

func kinds(reports []report) string {
	var list []string
	for _, r := range reports {
		list = append(list, r.Kind)
	}
	return strings.Join(list, " ")
}

// A process reports each command, its entry, and the last time at which it worked, before the
// commands of its release.
func TestProcessReportsWhatItDoes(t *testing.T) {
	s, err := server.Embed()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	addr := strings.TrimPrefix(s.URL, "redis://")
	a := run(t, role{Name: "A", Lock: "unique", Addrs: []string{addr}, TTL: time.Hour})
	b := run(t, role{Name: "B", Lock: "unique", Addrs: []string{addr}, TTL: time.Hour})

	entry := a.do(orderTry)
	if got, want := kinds(entry), "line entered answer"; got != want || !entry[2].In {
		t.Fatalf("got %s: %+v, want %s", got, entry, want)
	}
	if got, want := entry[0].Text, "SET lock:order A EX 3600 NX -> OK"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	refusal := b.do(orderTry)
	if got, want := kinds(refusal), "line answer"; got != want || refusal[1].In {
		t.Errorf("got %s: %+v, want %s", got, refusal, want)
	}
	if got, want := refusal[0].Text, "SET lock:order B EX 3600 NX -> nil"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	end := a.do(orderLeave)
	if got, want := kinds(end), "stopped line answer"; got != want {
		t.Fatalf("got %s: %+v, want %s", got, end, want)
	}
	if end[0].At.Before(entry[1].At) || end[0].At.After(end[1].At) {
		t.Errorf("entered %v, worked until %v, released %v", entry[1].At, end[0].At, end[1].At)
	}
	if again := b.do(orderTry); !again[len(again)-1].In {
		t.Errorf("got %+v", again)
	}
	if got := s.Commands("A"); got != 2 {
		t.Errorf("A sent %d commands, want 2", got)
	}
}

// A process whose lease is lost stops its work without an order, and reports why.
func TestProcessStopsWhenItsLeaseIsLost(t *testing.T) {
	const life = 600 * time.Millisecond
	s, err := server.Embed()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	a := run(t, role{Name: "A", Lock: "holdfast fixed", Addrs: []string{strings.TrimPrefix(s.URL, "redis://")}, TTL: life})
	reports := a.do(orderWait) // asks until an answer is in time
	if last := reports[len(reports)-1]; last.Error != "" {
		t.Fatal(last.Error)
	}
	told := func(r report) bool { return strings.Contains(r.Text, "is told that the lease is lost") }
	for !slices.ContainsFunc(reports, told) { // it may be told before the order is answered
		reports = append(reports, a.next(reportLine)...)
	}
	var entered, stopped time.Time
	for _, r := range reports {
		switch r.Kind {
		case reportEntered:
			entered = r.At
		case reportStopped:
			stopped = r.At
		}
	}
	if worked := stopped.Sub(entered); entered.IsZero() || stopped.IsZero() || worked > life {
		t.Errorf("it worked for %v after the grant of a lease of %v", worked, life)
	}
}

// playBroken plays with a scene whose processes end at once: the test binary runs no test.
func playBroken(t *testing.T, p play) (verdict, string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	v, err := perform(t.Context(), Config{Command: []string{self, "-test.run=^$"}, Out: &out, Stderr: io.Discard}, p)
	return v, out.String(), err
}

// After the first failure a play goes on without effect, and is not judged.
func TestPlayWithAProcessThatEnds(t *testing.T) {
	judged := false
	_, text, err := playBroken(t, func(s *scene) func() verdict {
		n := s.node()
		a := s.start("A", "unique", n)
		a.do(orderTry)
		a.kill()
		s.say("not printed")
		s.waiters(n, 1)
		s.look(s.node(), "PING")
		s.until(s.network(n).answered("nothing"))
		return func() verdict {
			judged = true
			return verdict{}
		}
	})
	if err == nil || err.Error() != "process A ended" || judged || strings.Contains(text, "printed") {
		t.Errorf("got %v, judged %v, %q", err, judged, text)
	}
}

// Every step ends when its processes cannot run, and says so.
func TestStepsWithoutProcesses(t *testing.T) {
	for _, step := range All() {
		for name, p := range map[string]play{"naive": step.naive, "holdfast": step.holdfast} {
			if _, _, err := playBroken(t, p); err == nil || !strings.Contains(err.Error(), "ended") {
				t.Errorf("%s, %s: got %v", step.Title, name, err)
			}
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	var out bytes.Buffer
	if err := Run(ctx, Config{Command: []string{"none"}, Out: &out}, 1); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// A step that stops a process says so where the system cannot.
func TestRunWithoutPause(t *testing.T) {
	for i, step := range All() {
		if !step.Pauses {
			continue
		}
		var out bytes.Buffer
		if err := Run(t.Context(), Config{Out: &out}, i+1); !errors.Is(err, ErrPause) {
			t.Errorf("%s: got %v", step.Title, err)
		}
	}
}

func TestWorkByHand(t *testing.T) {
	for _, in := range []string{"", "hello", `{"Lock":"none"}`} {
		if err := Work(t.Context(), strings.NewReader(in), io.Discard); err == nil {
			t.Errorf("%q: no error", in)
		}
	}
}
