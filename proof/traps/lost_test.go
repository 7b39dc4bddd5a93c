package traps_test

import (
	"os"
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
