-- break: end the hold that has a token. It becomes a remainder, with the end that it had.
--
-- KEYS  1 state of the name, 2 facts of the node
-- ARGV  1 mode, of which the kind counts, or "" for any kind, 2 token, 3 id of the break, 4 label of the caller, 5 not after (server us)
-- reply "X" facts id    the hold of this id is broken, by this break or an earlier one
--       "0" facts       no hold has this token
--       "F" what        the key is of another kind or format, and was not touched
--       "L" now         it came too late and did nothing
-- Replays change nothing. What an earlier break has ended stays so until both are taken back (free.lua).

--@include state
if now > ARGV[5] then
  return 'L' .. now
end
--@include facts
local key = KEYS[1]
local holds, left = live(key, ARGV[1])
if not holds then
  return 'F' .. left
end
local head, last = facts(KEYS[2], 'none')
local function meant(value)
  return ARGV[2] >= string.sub(value, 17, 32) and ARGV[2] <= string.sub(value, 33, 48)
end
for id, value in pairs(holds) do
  if meant(value) then
    redis.call('HSET', key, '-' .. id, broken(value, ARGV[4], ARGV[3]))
    redis.call('HDEL', key, id)
    local channel = parts(value, PAYLOAD)
    if channel ~= '' then
      redis.pcall('PUBLISH', channel, FORMAT .. 'R' .. id)
    end
    return 'X' .. head .. last .. id
  end
end
for field, value in pairs(left) do
  local breaks = breaks_of(value)
  if breaks and meant(value) then
    if breaks ~= '' and not but_for(breaks, ARGV[3]) then
      redis.call('HSET', key, field, with_breaks(value, breaks .. ARGV[3]))
    end
    return 'X' .. head .. last .. string.sub(field, 2)
  end
end
return '0' .. head .. last
