package examples_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
)

// At most two exports run at a time, however many hosts start them. A large export may take both
// places. Exports that came before it go first, and exports that came after it wait.
func Example_exports() {
	clients, end := hosts("host 1", "host 2", "host 3")
	defer end()
	const places = 2

	var inUse, most, done atomic.Int64
	export := func(weight int64) func(context.Context) error {
		return func(context.Context) error {
			if n := inUse.Add(weight); n > most.Load() {
				most.Store(n)
			}
			// ... export ...
			inUse.Add(-weight)
			done.Add(1)
			return nil
		}
	}
	var all sync.WaitGroup
	for _, client := range clients {
		for _, weight := range []int64{1, 2, 1} {
			all.Go(func() {
				exports := client.Semaphore("exports", places)
				if err := exports.Do(context.Background(), weight, export(weight)); err != nil {
					log.Print(err)
				}
			})
		}
	}
	all.Wait()
	fmt.Println(done.Load(), "exports are done; too many at a time:", most.Load() > places)
	// Output: 9 exports are done; too many at a time: false
}
