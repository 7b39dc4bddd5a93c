package main

import (
	"context"
	"crypto/rand"

	"github.com/redis/go-redis/v9"
)

// A message is a bound for whoever is told by a message, where the baton is told by its own waiting command: the two
// shortest scripts that keep a holder and a line, and one subscription a process. It is no lock: nothing
// expires, nothing is checked, nobody who dies is replaced.
type message struct {
	rdb    *redis.Client
	pubsub *redis.PubSub
	me     string
	told   chan struct{}
}

var (
	messageJoin = redis.NewScript(`
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then
  return 1
end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 0`)
	messageLeave = redis.NewScript(`
local next = redis.call('LPOP', KEYS[2])
if not next then
  return redis.call('DEL', KEYS[1])
end
redis.call('SET', KEYS[1], next)
return redis.call('PUBLISH', next, '')`)
)

func openMessage(t target) (Contender, error) {
	m := &message{rdb: newRedis(t), me: "bench:" + rand.Text(), told: make(chan struct{}, 1)}
	m.pubsub = m.rdb.Subscribe(context.Background(), m.me)
	if _, err := m.pubsub.Receive(context.Background()); err != nil {
		return nil, err
	}
	go func() {
		for {
			if _, err := m.pubsub.ReceiveMessage(context.Background()); err != nil {
				return
			}
			m.told <- struct{}{}
		}
	}()
	return m, nil
}

// Lock is for one goroutine at a time, as rows 4 and 5 have it.
func (m *message) Lock(ctx context.Context, name string) (func() error, error) {
	keys := []string{name, name + ":line"}
	holds, err := messageJoin.Run(ctx, m.rdb, keys, m.me).Int()
	if err != nil {
		return nil, err
	}
	if holds == 0 {
		select {
		case <-m.told:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() error { return messageLeave.Run(ctx, m.rdb, keys).Err() }, nil
}

func (m *message) Close() error {
	err := m.pubsub.Close()
	if cerr := m.rdb.Close(); err == nil {
		err = cerr
	}
	return err
}
