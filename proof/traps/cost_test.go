package traps_test

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/proof/harness"
)

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
