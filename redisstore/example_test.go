package redisstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

func Example() {
	ctx := context.Background()
	server, err := redisserver.Run(ctx) // stands for your server
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	// Yours: redis.NewClient, redis.NewFailoverClient or redis.NewClusterClient.
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := holdfast.New(redisstore.New(rdb), nil)
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
