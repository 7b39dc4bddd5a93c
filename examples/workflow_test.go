package examples_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
)

// The steps of a workflow run in several processes, and each enters the workflow's own lock: they
// name the same owner. The lock is free when every step has released it.
func Example_workflow() {
	clients, end := hosts("step 1", "step 2", "another workflow")
	defer end()
	ctx := context.Background()

	first, err := clients[0].Mutex("customer:7", holdfast.WithOwner("workflow 12")).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// The first step calls the second, in another process, and waits for its answer.
	err = clients[1].Mutex("customer:7", holdfast.WithOwner("workflow 12")).Do(ctx, func(context.Context) error {
		fmt.Println("step 2 is in beside step 1")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = clients[2].Mutex("customer:7", holdfast.WithOwner("workflow 13")).TryLock(ctx)
	fmt.Println("another workflow is kept out:", errors.Is(err, holdfast.ErrHeld))
	if err := first.Release(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// step 2 is in beside step 1
	// another workflow is kept out: true
}

// One request locks, and another request, in another process, goes on with the lease and frees it.
// Between Detach and Attach nobody renews the lease, so its TTL is longer than that takes.
func Example_handOver() {
	clients, end := hosts("request 1", "request 2")
	defer end()
	ctx := context.Background()

	lease, err := clients[0].Mutex("upload:9", holdfast.WithTTL(5*time.Minute)).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	ticket, err := lease.Detach() // kept in the session, for the next request
	if err != nil {
		log.Fatal(err)
	}

	attached, err := clients[1].Attach(ctx, ticket)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the token is the same:", attached.Token() == lease.Token())
	fmt.Println("the first request has it no more:", errors.Is(lease.Err(), holdfast.ErrNotHeld))
	fmt.Println("released:", attached.Release() == nil)
	// Output:
	// the token is the same: true
	// the first request has it no more: true
	// released: true
}
