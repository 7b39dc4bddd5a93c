// Package planted has a test with a mistake, for command schedulejitter to find.
package planted

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestOrder assumes that who is started first is first.
func TestOrder(t *testing.T) {
	for range 10 {
		var both sync.WaitGroup
		var mu sync.Mutex
		var busy atomic.Int64
		var order []string
		for _, name := range []string{"first", "second"} {
			both.Go(func() {
				if name == "second" {
					for range 1_000_000 { // some ms, on a quiet machine enough
						busy.Add(1)
					}
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
			})
		}
		both.Wait()
		if order[0] != "first" {
			t.Fatal(order)
		}
	}
}

// TestNothing assumes nothing.
func TestNothing(t *testing.T) {
	t.Log("nothing")
}
