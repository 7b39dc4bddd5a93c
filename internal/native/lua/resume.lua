-- resume: give the hold of an owner, with a token it was granted, a new ticket: another process goes on with it.
--
-- KEYS  1 state of the name, 2 clock of its slot
-- ARGV  1 ticket, 2 payload, 3 TTL in ms, 4 not after (server us), 5 owner, 6 token (16 digits)
-- reply as for ask; "B" when there is no such hold
-- The old ticket holds no more; the new token is larger. Replays: as for ask.

local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)
if now > ARGV[4] then
  return 'L' .. now
end

--@include line

local ticket, payload, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- meant tells whether a hold is the one that the caller names: of this owner, or of none and this very id.
local function meant(ticket, payload, token)
  local _, block, _, owner = parts(payload)
  local last = string.format('%016.0f', tonumber(token) + tonumber(block) - 1)
  return (owner == ARGV[5] or owner == '' and string.sub(ticket, 5) == ARGV[5]) and token <= ARGV[6] and ARGV[6] <= last
end

local value = redis.pcall('GET', key)
if type(value) == 'string' then
  local odd = foreign(value, ticket)
  if odd then
    return odd
  end
  local holder, token, label = string.sub(value, 1, 26), string.sub(value, 27, 42), string.sub(value, 43)
  if holder == ticket then
    return 'H' .. token .. '1|' .. now
  end
  if meant(holder, label, token) then
    redis.call('PEXPIRE', key, ARGV[3])
    token = take('1')
    redis.call('SET', key, ticket .. token .. payload, 'PX', ARGV[3])
    return 'H' .. token .. '1|' .. now
  end
  return 'B' .. now .. '|' .. redis.call('PTTL', key) .. '|1|0|' .. holder .. label
end
local some = redis.call('ZRANGE', key, '-1', '-1')[1]
local odd = some and foreign(string.sub(some, 2), ticket)
if odd then
  return odd
end
local live = holders()
for _, member in ipairs(live) do
  local holder, token, label = string.sub(member, 2, 27), string.sub(member, 28, 43), string.sub(member, 44)
  if holder == ticket then
    return 'H' .. token .. '1|' .. now
  end
  if meant(holder, label, token) then
    redis.call('ZREM', key, member)
    token = take('1')
    hold(ticket, token, payload, ttl)
    outlive(ms + ttl)
    return 'H' .. token .. '1|' .. now
  end
end
return 'B' .. describe(live, redis.call('ZCOUNT', key, PLACES, '+inf'))
