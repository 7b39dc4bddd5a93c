package examples_test

import (
	"context"
	"fmt"
	"log"
	"sync"
)

// A transfer between two accounts holds both of them. Transfers do not deadlock, in whatever order
// they name the accounts.
func Example_transfer() {
	clients, end := hosts("host 1", "host 2")
	defer end()
	balance := map[string]*int{"anna": new(int), "bert": new(int)}
	*balance["anna"], *balance["bert"] = 100, 100

	transfer := func(client int, from, to string, amount int) error {
		accounts := []string{"account:" + from, "account:" + to}
		return clients[client].All(accounts).Do(context.Background(), func(context.Context) error {
			*balance[from] -= amount
			*balance[to] += amount
			return nil
		})
	}

	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := transfer(0, "anna", "bert", 10); err != nil {
				log.Print(err)
			}
		})
		all.Go(func() {
			if err := transfer(1, "bert", "anna", 4); err != nil {
				log.Print(err)
			}
		})
	}
	all.Wait()
	fmt.Println("anna has", *balance["anna"], "and bert", *balance["bert"])
	// Output: anna has 70 and bert 130
}
