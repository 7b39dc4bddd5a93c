package examples_test

import (
	"context"
	"log"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// hosts are clients on one server. Each stands for a process, on a host of its own, which would
// begin as the example of package redisstore does.
func hosts(labels ...string) (clients []*holdfast.Client, end func()) {
	server, err := redisserver.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	var under []*redis.Client
	for _, label := range labels {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{Label: label})
		if err != nil {
			log.Fatal(err)
		}
		clients, under = append(clients, client), append(under, rdb)
	}
	return clients, func() {
		for i, client := range clients {
			client.Close()
			under[i].Close()
		}
		_ = server.Close()
	}
}
