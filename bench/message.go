package main

import (
	"context"
	"crypto/rand"

	"github.com/redis/go-redis/v9"
)

// A message is a bound for whoever is told by a message, where the baton is told by its own waiting
// command: two short scripts that keep a holder and a line, and one subscription a process. It is
// no lock: nothing is looked after when somebody dies or does not hear.
type message struct {
	rdb         *redis.Client
	pubsub      *redis.PubSub
	join, leave *redis.Script
	me          string
	told        chan struct{} // nil: who waits reads the subscription
}

// The keys are the holder, the line, and the largest token; the arguments who asks, and a TTL in
// milliseconds.
var (
	plainJoin = redis.NewScript(`
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then
  return 1
end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 0`)
	plainLeave = redis.NewScript(`
local next = redis.call('LPOP', KEYS[2])
if not next then
  return redis.call('DEL', KEYS[1])
end
redis.call('SET', KEYS[1], next)
return redis.call('PUBLISH', next, '')`)

	// No lock can do without this: nobody overtakes the line; a hold expires; a release is checked
	// against the holder; a token is drawn that grows with the server's time. The line expires too.
	checkedJoin = redis.NewScript(`
if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local time = redis.call('TIME')
  local token = time[1] .. string.sub('00000' .. time[2], -6)
  local last = redis.call('GETSET', KEYS[3], token)
  if not last or last < token then
    return 1
  end
  return redis.error_reply('the clock went back')
end
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 0`)
	checkedLeave = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return redis.error_reply('another holds')
end
local next = redis.call('LPOP', KEYS[2])
if not next then
  return redis.call('DEL', KEYS[1])
end
local time = redis.call('TIME')
local token = time[1] .. string.sub('00000' .. time[2], -6)
local last = redis.call('GETSET', KEYS[3], token)
if last and last >= token then
  return redis.error_reply('the clock went back')
end
redis.call('SET', KEYS[1], next, 'PX', ARGV[2])
return redis.call('PUBLISH', next, token)`)
)

func openMessage(t target) (Contender, error) {
	return listen(t, &message{join: plainJoin, leave: plainLeave, told: make(chan struct{}, 1)})
}

func openCheckedMessage(t target) (Contender, error) {
	return listen(t, &message{join: checkedJoin, leave: checkedLeave, told: make(chan struct{}, 1)})
}

// openSelfRead returns the bound of all that are told by a message: no goroutine has to wake
// another. No waiter can give up then, as no context interrupts a read.
func openSelfRead(t target) (Contender, error) {
	return listen(t, &message{join: checkedJoin, leave: checkedLeave})
}

func listen(t target, m *message) (Contender, error) {
	m.rdb, m.me = newRedis(t), "bench:"+rand.Text()
	m.pubsub = m.rdb.Subscribe(context.Background(), m.me)
	if _, err := m.pubsub.Receive(context.Background()); err != nil {
		return nil, err
	}
	if m.told == nil {
		return m, nil
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
	keys := []string{name, name + ":queue", name + ":clock"}
	holds, err := m.join.Run(ctx, m.rdb, keys, m.me, ttl.Milliseconds()).Int()
	if err != nil {
		return nil, err
	}
	if holds == 0 {
		if err := m.wait(ctx); err != nil {
			return nil, err
		}
	}
	return func() error { return m.leave.Run(ctx, m.rdb, keys, m.me, ttl.Milliseconds()).Err() }, nil
}

func (m *message) wait(ctx context.Context) error {
	if m.told == nil {
		_, err := m.pubsub.ReceiveMessage(ctx)
		return err
	}
	select {
	case <-m.told:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *message) Close() error {
	err := m.pubsub.Close()
	if cerr := m.rdb.Close(); err == nil {
		err = cerr
	}
	return err
}
