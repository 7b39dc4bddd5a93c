package main

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast"
)

// The line that holds is shown, and a terminal obeys no text of it.
func TestInspectShowsTheStack(t *testing.T) {
	mini := miniredis.RunT(t)
	t.Setenv("REDIS_URL", "redis://"+mini.Addr())
	client := newClient(t, "redis://"+mini.Addr(), holdfast.Config{Label: "web\x1b[2J", Remote: true})
	for range 2 {
		lease, err := client.RWMutex("n").RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release()
	}
	expectRun(t, 0, []string{"inspect", "--stack", "n"}, `(?m)^"web\\x1b\[2J", token \d+: the oldest of 2 leases was taken \S+ ago by
  github.com/holdfast-go/holdfast/cmd/holdfast.TestInspectShowsTheStack stack_test.go:\d+
  testing.tRunner testing.go:\d+$`)
	expectRun(t, 0, []string{"inspect", "--stack", "-o", "json", "n"}, `(?m)^          "file": "stack_test.go",$`)
}
