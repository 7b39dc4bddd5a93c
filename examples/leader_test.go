package examples_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
)

// A leader schedules. When it stops, another candidate takes over at once. Only the leader
// schedules.
func Example_leader() {
	clients, end := hosts("host 1", "host 2")
	defer end()

	var candidates sync.WaitGroup
	leads := make(chan string)
	start := func(host int) (stop context.CancelFunc) {
		ctx, stop := context.WithCancel(context.Background())
		candidates.Go(func() {
			err := clients[host].Election("scheduler").Run(ctx, func(ctx context.Context) error {
				leads <- fmt.Sprintf("host %d", host+1)
				<-ctx.Done() // schedules until it is stopped, or its lease is lost
				return ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				log.Print(err)
			}
		})
		return stop
	}

	stop := start(0)
	fmt.Println(<-leads, "schedules")
	leader, err := clients[1].Election("scheduler").Leader(context.Background())
	fmt.Println("the leader is", leader.Label, err)

	stopOther := start(1)
	stop() // host 1 is shut down
	fmt.Println(<-leads, "schedules")
	stopOther()
	candidates.Wait()
	// Output:
	// host 1 schedules
	// the leader is host 1 <nil>
	// host 2 schedules
}
