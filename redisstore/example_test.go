package redisstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/redisstore/internal/embedded"
)

// hosts returns clients on a server inside the test. Each client stands for a process on a host of
// its own, which would begin as Example does.
func hosts(labels ...string) (clients []*holdfast.Client, end func()) {
	server, stop := embedded.Open()
	for _, label := range labels {
		client, err := holdfast.New(redisstore.New(server.Client()), &holdfast.Config{Label: label})
		if err != nil {
			log.Fatal(err)
		}
		clients = append(clients, client)
	}
	return clients, func() {
		for _, client := range clients {
			client.Close()
		}
		stop()
	}
}

func Example() {
	server, end := embedded.Open()
	defer end()
	rdb := server.Client() // yours: redis.NewClient, redis.NewFailoverClient or redis.NewClusterClient

	client, err := holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	err = client.Mutex("order:42").Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("one process at a time")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: one process at a time
}
