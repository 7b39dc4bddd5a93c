package integrations_test

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

// connect runs a redis-server for an example, and makes a client on it.
func connect() (addr string, client *holdfast.Client, end func()) {
	server, err := redisserver.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	client, err = holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		log.Fatal(err)
	}
	return server.Addr(), client, func() {
		client.Close()
		rdb.Close()
		_ = server.Close()
	}
}
