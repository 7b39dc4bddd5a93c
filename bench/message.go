package main

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/redis/go-redis/v9"
)

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

// openMessage opens a bound for whoever is told by a message, where the baton is told by its own
// waiting command: two short scripts that keep a holder and a line, and one subscription a process.
// It is no lock: nothing is looked after when somebody dies or does not hear. Its lock is for one
// goroutine at a time, as rows 4 and 5 have it.
//
// With selfRead, whoever waits reads the subscription, and no goroutine has to wake another. No
// waiter can give up then, as no context interrupts a read.
func openMessage(join, leave *redis.Script, selfRead bool) func(target) (contender, error) {
	return func(t target) (contender, error) {
		rdb, me, background := newRedis(t), "bench:"+rand.Text(), context.Background()
		pubsub := rdb.Subscribe(background, me)
		if _, err := pubsub.Receive(background); err != nil {
			return contender{}, err
		}
		wait := func(ctx context.Context) error {
			_, err := pubsub.ReceiveMessage(ctx)
			return err
		}
		if !selfRead {
			told, read := make(chan struct{}, 1), wait
			go func() {
				for read(background) == nil {
					told <- struct{}{}
				}
			}()
			wait = func(ctx context.Context) error {
				select {
				case <-told:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		lock := func(ctx context.Context, name string) (func() error, error) {
			keys := []string{name, name + ":queue", name + ":clock"}
			holds, err := join.Run(ctx, rdb, keys, me, ttl.Milliseconds()).Int()
			if err == nil && holds == 0 {
				err = wait(ctx)
			}
			return func() error { return leave.Run(ctx, rdb, keys, me, ttl.Milliseconds()).Err() }, err
		}
		return contender{lock: lock, close: func() error { return errors.Join(pubsub.Close(), rdb.Close()) }}, nil
	}
}
