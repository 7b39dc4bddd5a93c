package naive

import "context"

// A Reentrant is a hash with the holder and a count. The holder may enter again, which counts up.
// It must leave as often, which counts down, and the lock is free when the count is 0.
//
// The bug: a request is not counted once, but as often as it arrives. When an answer is lost,
// go-redis sends the script again, and one entry counts as two.
type Reentrant struct{ Key }

const enter = `-- enter
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
return 0`

// TryLock takes a free lock, or enters that of this process again.
func (l Reentrant) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.Eval(ctx, enter, []string{l.key}, l.id, l.ttl.Milliseconds()).Bool()
}

// leave returns nil if the caller does not hold, 0 if it still holds, and 1 if the lock is free.
const leave = `-- leave
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
return 1`

// Unlock gives one entry back.
func (l Reentrant) Unlock(ctx context.Context) error {
	return l.rdb.Eval(ctx, leave, []string{l.key}, l.id, l.ttl.Milliseconds()).Err()
}
