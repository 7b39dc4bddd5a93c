package examples_test

import (
	"context"
	"fmt"
	"log"
	"sync"
)

// All instances wait for a migration before they serve. The deployment sets the latch. Instances
// may wait for the latch before that. It stays open for a day, so an instance that starts later
// does not wait.
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
