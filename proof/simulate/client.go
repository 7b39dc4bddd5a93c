package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
)

// A client is one life of a process on a host of its own.
type client struct {
	*holdfast.Client
	wire *wire
	rdb  *redis.Client
	name string
	ctx  context.Context // ends with its life
	end  context.CancelFunc
	dead bool // guarded by the ledger's mutex
}

// connect makes a client on a wire.
func connect(w *wire, name string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", Dialer: w.dial, ClientName: name, DisableIdentity: true,
		PoolSize:       1000,    // waiting for a turn uses timers that all bubbles would share
		ReadBufferSize: 4 << 10, // connections come and go; what is written goes in one piece, which faults count as one request
	})
}

func newClient(w *wire, name string) (*client, error) {
	rdb := connect(w, name)
	locks, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{Label: name})
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	c := &client{Client: locks, wire: w, rdb: rdb, name: name}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// close gives everything back, as far as the network lets it.
func (c *client) close() error {
	c.end()
	err := c.Close()
	_ = c.rdb.Close()
	return err
}

// pass lets time go by.
func pass(d time.Duration) { <-time.After(d) }
