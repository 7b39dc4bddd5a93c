package engine_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/lateness"
)

// The first in the queue enters when it can, whatever mix of holds it waits for. The scripts pass
// the same test in proof/clock.
func TestWaiterEntersWhenItCan(t *testing.T) {
	mixes := 1000
	if os.Getenv("HOLDFAST_PROOF") == "1" {
		mixes = 10_000
	}
	for _, m := range lateness.Mixes(mixes) {
		var run *lateness.Run
		synctest.Test(t, func(*testing.T) {
			server := memory.New(protocol.Features{Queue: true, Tokens: true})
			run = lateness.Play(m, func(int) protocol.Protocol { return server.Connect("p") })
		})
		if faults := run.Faults(); len(faults) > 0 {
			t.Errorf("%s\n%v", strings.Join(faults, "\n"), run)
		}
	}
}
