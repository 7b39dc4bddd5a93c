package traps_test

import (
	"os"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) {
	harness.Quiet()
	os.Exit(leak.Main(m))
}

// Trap 10 with a hold of an owner: what counts entries counts a repeated one twice, and never comes
// to zero.
func TestMutexEntryWithoutAnswerCountsOnce(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	m := harness.Locker(t, p.Addr(), nil).Mutex("n", holdfast.WithOwner("me"))
	first := harness.Lock(t, m)
	lost := p.DropAnswer("EVALSHA")
	second := harness.Lock(t, m)
	harness.Signalled(t, "the answer is lost", lost)
	harness.Release(t, second)
	if n := harness.Must(t, srv, "EXISTS", harness.KeyOf("n")); n != int64(1) || harness.Checked(t, first) != nil {
		t.Error("the first entry was released with the second")
	}
	harness.Release(t, first)
	if state := harness.Must(t, srv, "GET", harness.KeyOf("n")); state != nil {
		t.Errorf("it is still held: %q", state)
	}
}

// An uncontended lock costs one command, as does its release; only the first of a client asks
// before what the server is and what time it has.
func TestMutexPairCostsTwoCommands(t *testing.T) {
	t.Parallel()
	_, p := harness.Proxied(t)
	m := harness.Locker(t, p.Addr(), nil).Mutex("n")
	p.Record()
	harness.Release(t, harness.Lock(t, m))
	first := slices.DeleteFunc(harness.SentTo(p), isGreeting)
	if want := []string{"INFO", "TIME", "EVALSHA", "EVAL", "EVALSHA", "EVAL"}; !slices.Equal(first, want) {
		t.Errorf("the first pair sent %v, want %v", first, want)
	}
	const pairs = 50
	p.Record()
	for range pairs {
		harness.Release(t, harness.Lock(t, m))
	}
	if sent := harness.SentTo(p); len(sent) != 2*pairs ||
		slices.ContainsFunc(sent, func(name string) bool { return name != "EVALSHA" }) {
		t.Errorf("%d pairs sent %d commands: %v", pairs, len(sent), sent)
	}
}

// isGreeting reports whether a command is one of those that a new connection begins with.
func isGreeting(name string) bool { return name == "HELLO" || name == "CLIENT" }
