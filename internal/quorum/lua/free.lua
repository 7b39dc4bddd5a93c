-- free: give a hold back, or cease to wait, and wake who waits.
--
-- KEYS  1 state of the name, 2 who waits, 3 who watches
-- ARGV  1 id, 2 mode, 3 round: a hold of a later one stays, 4 ms for which nobody may enter (the rest of a min hold), or "0",
--       5 "f" a holder frees, "q" quietly: a try that failed, "u" the same, undoing a resume, "w" one who waited gave up, "p" it
--       does not wait any more, and holds elsewhere: a hold stays,
--       6 length ":" owner channel, or "" when no message reached it
-- reply "1" there was a hold, "0" there was none, "F" what: another kind or format
-- Replays find nothing and change nothing. What frees memory comes before what needs it.

--@include state
local key, id = KEYS[1], ARGV[1]
local holds, odd, replaced = live(key, ARGV[2])
if not holds then
  return 'F' .. odd
end
local opened = leave(KEYS[2], id, ARGV[2], ARGV[6])
local mine = holds[id]
if mine and (string.sub(mine, 49, 64) > ARGV[3] or ARGV[5] == 'p') then
  mine = nil
end
if ARGV[5] == 'f' then
  ended(key, replaced, id)
end
local keep = tonumber(ARGV[4])
if mine then
  local old = ARGV[5] == 'u' and replaced['<' .. id]
  redis.call('HDEL', key, id, '<' .. id)
  holds[id] = nil
  if old then
    local ends = tonumber(string.sub(old, 26, 38))
    if ends > ms and not holds[string.sub(old, 1, 22)] then -- one that was set again meanwhile may be confirmed for longer
      redis.call('HSET', key, string.sub(old, 1, 22), string.sub(old, 23))
      outlive(key, ends)
    end
    return '1'
  end
  local left = REST .. string.sub(mine, 3, 3)
  local rest = holds[left] -- of another hold of the same owner, or of another that shared
  if keep > 0 and not (rest and tonumber(string.sub(rest, 4, 16)) >= ms + keep) then
    redis.call('HSET', key, left, string.sub(mine, 1, 3) .. string.format('%013.0f', ms + keep) ..
      string.sub(mine, 17, 48) .. NONE .. '0:')
    outlive(key, ms + keep)
  end
end
local shared = mine and string.sub(mine, 3, 3) ~= 's' -- from now on: an owner may share what it excluded others from
for _, value in pairs(holds) do
  shared = shared and string.sub(value, 3, 3) == 's'
end
if opened or (shared or not next(holds)) and (mine and (ARGV[5] == 'f' or ARGV[5] == 'u') or ARGV[5] == 'w') then
  wake(KEYS[2], keep)
end
if mine and ARGV[5] == 'f' then
  changed(KEYS[3])
end
return mine and '1' or '0'
