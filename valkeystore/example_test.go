package valkeystore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/valkeystore"
)

func Example() {
	ctx := context.Background()
	server, err := redisserver.Run(ctx) // stands for your server
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	rdb, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{server.Addr()}})
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	client, err := holdfast.New(valkeystore.New(rdb), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	err = client.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		fmt.Println("one process at a time")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: one process at a time
}
