package leak

import (
	"strings"
	"testing"
)

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
