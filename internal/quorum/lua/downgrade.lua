-- downgrade: let a hold that excludes share from now on.
--
-- KEYS  1 state of the name, 2 who waits, 3 who watches, 4 facts of the node
-- ARGV  1 id, 2 mode, 3 TTL in ms, 4 bucket, 5 length ":" owner channel, or "" when no message reaches it
-- reply "H" facts first last    it holds, and shares
--       "B" facts "0|0|0|"      there is no such hold
--       "R" facts by            a caller with that label broke it
--       "F" what                the key is of another kind or format, and was not touched
-- Replays: a hold that shares already is told so, with the full TTL.

--@include state
--@include facts
local key, id, mode = KEYS[1], ARGV[1], ARGV[2]
local holds, left = live(key, mode)
if not holds then
  return 'F' .. left
end
local head, last = facts(KEYS[4], ARGV[4])
local opened = leave(KEYS[2], id, mode, ARGV[5]) -- where another kept it out, it may be known to wait
local mine = holds[id]
if not mine then
  if opened then
    wake(KEYS[2], 0)
  end
  if left['-' .. id] then
    return 'R' .. head .. last .. broken_by(left['-' .. id])
  end
  return 'B' .. head .. last .. '0|0|0|'
end
local ends = ms + tonumber(ARGV[3])
redis.call('HSET', key, id, mode .. string.format('%013.0f', ends) .. string.sub(mine, 17, 48) .. AGREED .. string.sub(mine, 65))
outlive(key, ends)
if opened or string.sub(mine, 3, 3) ~= 's' then
  wake(KEYS[2], 0)
end
return 'H' .. head .. last .. string.sub(mine, 17, 48)
