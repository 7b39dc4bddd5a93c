package naive

import "context"

// A ReadWrite is a hash with a mode and the holders. Readers hold it together, a writer alone.
//
// The bug: a reader gets in whenever readers are in. While a next reader comes before the last one
// leaves, a writer waits for ever.
type ReadWrite struct {
	Key
	Write bool
}

const read = `-- read
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode == false or mode == 'read' then
  redis.call('HSET', KEYS[1], 'mode', 'read', ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
return 0`

const write = `-- write
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
return 0`

// TryLock takes the lock if it is free, or to read if others read.
func (l ReadWrite) TryLock(ctx context.Context) (bool, error) {
	script := read
	if l.Write {
		script = write
	}
	return l.rdb.Eval(ctx, script, []string{l.key}, l.id, l.ttl.Milliseconds()).Bool()
}

const giveBack = `-- give back
if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 and redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1]) -- only the mode is left
end
return 1`

// Unlock takes this process out. The last one frees the lock.
func (l ReadWrite) Unlock(ctx context.Context) error {
	return l.rdb.Eval(ctx, giveBack, []string{l.key}, l.id).Err()
}
