package examples_test

import (
	"context"
	"fmt"
	"log"
	"sync"
)

// A migration that all instances wait for before they serve. The latch is set by whoever deploys, may be waited for before
// that, and stays open for a day: an instance that starts later does not wait.
func Example_migration() {
	clients, end := hosts("deployment", "instance 1", "instance 2", "instance 3")
	defer end()
	ctx := context.Background()

	var instances sync.WaitGroup
	for _, client := range clients[1:] {
		instances.Go(func() {
			if err := client.Latch("schema 7").Wait(ctx); err != nil {
				log.Print(err)
				return
			}
			fmt.Println("an instance serves")
		})
	}

	migrated := clients[0].Latch("schema 7")
	if err := migrated.Set(ctx, 2); err != nil { // two shards
		log.Print(err)
	}
	for shard := range 2 {
		fmt.Println("shard", shard, "is migrated")
		if err := migrated.CountDown(ctx); err != nil {
			log.Print(err)
		}
	}
	instances.Wait()
	// Output:
	// shard 0 is migrated
	// shard 1 is migrated
	// an instance serves
	// an instance serves
	// an instance serves
}
