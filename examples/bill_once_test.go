package examples_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/holdfast-go/holdfast"
)

// orders stands for a database. It refuses a late writer, whose token is smaller than the largest
// it has seen.
type orders struct {
	mu    sync.Mutex
	token int64
	paid  map[int]bool
}

func (o *orders) isPaid(id int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.paid[id]
}

func (o *orders) pay(id int, token int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if token < o.token {
		return fmt.Errorf("token %d is behind %d: another has the order", token, o.token)
	}
	o.token, o.paid[id] = token, true
	return nil
}

// An order is billed once, although two hosts hear of it. The second host waits for the first, and
// finds the order paid. A host may stand still while it holds the lock, and go on too late. The
// fencing token makes the database refuse such a host.
func Example_billOnce() {
	clients, end := hosts("host 1", "host 2")
	defer end()
	database := &orders{paid: map[int]bool{}}

	bill := func(ctx context.Context, client *holdfast.Client, order int) error {
		lease, err := client.Mutex(fmt.Sprintf("order:%d", order)).Lock(ctx)
		if err != nil {
			return err
		}
		defer lease.Release()
		if database.isPaid(order) {
			fmt.Println("order", order, "was billed before")
			return nil
		}
		// ... charge the card, under lease.Bind(ctx), which ends when the lease is lost ...
		if err := database.pay(order, lease.Token()); err != nil {
			return err
		}
		fmt.Println("billed order", order)
		return nil
	}

	var all sync.WaitGroup
	for _, client := range clients {
		all.Go(func() {
			if err := bill(context.Background(), client, 42); err != nil {
				log.Print(err)
			}
		})
	}
	all.Wait()
	// Output:
	// billed order 42
	// order 42 was billed before
}
