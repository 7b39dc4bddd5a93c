package engine

import (
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// A leader that enters its own lock every second, for weeks, must not keep what it released.
func TestReleasedEntriesAreForgotten(t *testing.T) {
	h := &hold{grant: grant{lock: &Lock{settings: &settings{}}}, rareState: &nothingRare}
	first := h.beginTenure(t.Context())
	tenure := first.tenure
	var second *Lease
	for range 1000 {
		second = tenure.addLease(t.Context(), false)
		third := tenure.addLease(t.Context(), true)
		tenure.removeEntry(second)
		tenure.removeEntry(third)
	}
	if len(tenure.entries) != 1 || tenure.entries[0] != first || cap(tenure.entries) > 8 {
		t.Errorf("%d entries of a capacity of %d, want the first alone", len(tenure.entries), cap(tenure.entries))
	}
	second = tenure.addLease(t.Context(), false)
	tenure.removeEntry(first)
	if len(tenure.entries) != 1 || tenure.entries[0] != second || first.tenure != tenure {
		t.Errorf("entries %v, want the second alone", tenure.entries)
	}
}

// Each lease of a process has a hold, with its first tenure and lease: docs/performance.md says how
// much that takes. The next larger class of the allocator has 512 bytes.
func TestHoldIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(hold{}); size > 480 {
		t.Errorf("a hold takes %d bytes: what few holds need belongs into rareState", size)
	}
}

// TestMain fails when a goroutine is left behind (trap 33), or when a hold has changed what all
// holds share.
func TestMain(m *testing.M) {
	code := leak.Main(m)
	if nothingRare != (rareState{}) {
		fmt.Fprintln(os.Stderr, "a hold has changed what all holds share")
		code = 1
	}
	os.Exit(code)
}
