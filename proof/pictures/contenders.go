package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// A cast is what holds and waits in the picture: clients with the labels of a small shop.
type cast struct {
	ctx     context.Context
	addr    string
	waiting sync.WaitGroup
	clients []*holdfast.Client
	under   []*redis.Client
	failed  error
}

func (c *cast) client(label string) *holdfast.Client {
	rdb := redis.NewClient(&redis.Options{Addr: c.addr})
	client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{Label: label})
	c.failed = errors.Join(c.failed, err)
	c.clients, c.under = append(c.clients, client), append(c.under, rdb)
	return client
}

// waits runs a call that waits until the end, and returns when so many wait for the name.
func (c *cast) waits(name string, waiters int, call func() error) {
	c.waiting.Go(func() { _ = call() })
	look := c.clients[0]
	for c.failed == nil {
		info, err := look.Inspect(c.ctx, name)
		if c.failed = err; info.Waiters >= waiters {
			return
		}
	}
}

func (c *cast) holds(_ *holdfast.Lease, err error) { c.failed = errors.Join(c.failed, err) }

// play lets all of them hold and wait.
func (c *cast) play() {
	web, batch, cron, other := c.client("web@eu-1/4711"), c.client("batch@eu-2/812"), c.client("cron@eu-3/77"), c.client("web@eu-2/4720")
	c.holds(web.Mutex("order:42").Lock(c.ctx))
	c.waits("order:42", 1, func() error { _, err := other.Mutex("order:42").Lock(c.ctx); return err })
	c.waits("order:42", 2, func() error { _, err := batch.Mutex("order:42").Lock(c.ctx); return err })
	c.holds(web.Mutex("order:57").Lock(c.ctx))
	c.holds(cron.Mutex("nightly-report", holdfast.WithTTL(2*time.Minute)).Lock(c.ctx))
	c.holds(cron.Election("scheduler").Campaign(c.ctx))
	c.waits("scheduler", 1, func() error { _, err := batch.Election("scheduler").Campaign(c.ctx); return err })
	for _, reader := range []*holdfast.Client{web, other, batch} {
		c.holds(reader.RWMutex("config").RLock(c.ctx))
	}
	c.waits("config", 1, func() error { _, err := cron.RWMutex("config").Lock(c.ctx); return err })
	for _, exporter := range []*holdfast.Client{batch, other, web} {
		c.holds(exporter.Semaphore("exports", 3).Acquire(c.ctx, 1))
	}
	c.waits("exports", 1, func() error { _, err := cron.Semaphore("exports", 3).Acquire(c.ctx, 1); return err })
	c.failed = errors.Join(c.failed, web.Latch("migrated").Set(c.ctx, 3))
}

func (c *cast) end() {
	c.waiting.Wait()
	for i, client := range c.clients {
		_ = client.Close()
		_ = c.under[i].Close()
	}
}

// top takes the list of "holdfast top", and a name with its queue.
func top(ctx context.Context, bin, into string) (err error) {
	server, err := redisserver.Run(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	playing, stop := context.WithCancel(ctx)
	c := &cast{ctx: playing, addr: server.Addr()}
	defer c.end()
	defer stop()
	if c.play(); c.failed != nil {
		return c.failed
	}
	x, err := openTerminal(ctx, bin, 98, 14, "redis://"+server.Addr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	if err := x.enter(ctx, "holdfast top"); err != nil {
		return err
	}
	screen, err := x.until(ctx, `(?s) 7 names.* 12s `)
	if err != nil {
		return err
	}
	return picture(filepath.Join(into, "top.svg"), "holdfast top", screen)
}
