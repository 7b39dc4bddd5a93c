package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// A client is one life of a process on a host of its own.
type client struct {
	*holdfast.Client
	wires []*wire // to each server
	rdbs  []*redis.Client
	name  string
	ctx   context.Context // ends with its life
	end   context.CancelFunc
	dead  bool // guarded by the ledger's mutex
}

// connect makes a client on a wire, which leads to a server at some address.
func connect(w *wire, address, name string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: address, Dialer: w.dial, ClientName: name, DisableIdentity: true,
		// Else the first connections ask for these under a mutex that others wait for, and the
		// bubble's clock stands still.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},

		PoolSize: 1000, // waiting for a turn uses timers that all bubbles would share
		// Connections come and go. What is written goes in one piece, which faults count as one
		// request.
		ReadBufferSize: 4 << 10,
	})
}

func newClient(wires []*wire, name string) (*client, error) {
	c := &client{wires: wires, name: name}
	var stores []store.Store
	for i, wire := range wires {
		rdb := connect(wire, fmt.Sprintf("127.0.0.1:%d", 6379+i), name) // by which a quorum tells its masters apart
		c.rdbs, stores = append(c.rdbs, rdb), append(stores, redisstore.New(rdb))
	}
	var err error
	if len(stores) == 1 {
		c.Client, err = holdfast.New(stores[0], &holdfast.Config{Label: name})
	} else {
		c.Client, err = holdfast.NewQuorum(stores, &holdfast.Config{Label: name, MaxTTL: longestTTL})
	}
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// close gives everything back, as far as the network lets it.
func (c *client) close() error {
	c.end()
	err := c.Close()
	for _, rdb := range c.rdbs {
		_ = rdb.Close()
	}
	return err
}

func sleep(d time.Duration) { <-time.After(max(d, 1)) }
