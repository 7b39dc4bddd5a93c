package leak

import (
	"os"
	"strings"
	"testing"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestSince(t *testing.T) {
	before := stacks()
	stop, gone := make(chan bool), make(chan bool)
	go func() { defer close(gone); <-stop }()
	found := false
	for id, stack := range stacks() {
		found = found || before[id] == "" && strings.Contains(stack, "TestSince")
	}
	if !found {
		t.Error("a goroutine that was left is not found")
	}
	close(stop)
	<-gone
	if left := since(before); left != "" {
		t.Errorf("found, although it has ended: %s", left)
	}
}
