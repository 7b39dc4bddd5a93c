-- look: tell the state of a name, and remember one who wants to be told of its next change.
--
-- KEYS  1 state of the name, 2 who waits, 3 who watches, 4 facts of the node
-- ARGV  1 mode, 2 id and channel of the watcher, or "", 3 ms that it is remembered, 4 "w" to forget the watcher instead, or ""
-- reply "S" facts holders "|" waiters "|" and, when somebody holds, id first payload; where only
--       remainders are left, their number and nobody
--       "F" what    the key is of another kind or format, and was not touched

--@include state
--@include facts
if ARGV[4] == 'w' then
  redis.call('ZREM', KEYS[3], ARGV[2])
  return 'S'
end
local holds, left = live(KEYS[1], ARGV[1])
if not holds then
  return 'F' .. left
end
local count, remainders, first = 0, 0, nil
for id in pairs(holds) do
  count = count + 1
  if not first or id < first then -- every node names the same
    first = id
  end
end
for _ in pairs(left) do
  remainders = remainders + 1
end
if ARGV[2] ~= '' then
  redis.call('ZADD', KEYS[3], now, ARGV[2])
  redis.call('PEXPIRE', KEYS[3], ARGV[3])
end
local head, last = facts(KEYS[4], 'none')
local what = (count > 0 and count or remainders) .. '|' .. redis.call('ZCARD', KEYS[2]) .. '|'
if first then
  what = what .. first .. string.sub(holds[first], 17, 32) .. string.sub(holds[first], PAYLOAD)
elseif remainders > 0 then
  what = what .. NOBODY
end
return 'S' .. head .. last .. what
