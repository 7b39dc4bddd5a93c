-- ask: hold a name, or stand in line for it, or only look.
--
-- KEYS  1 state of the name, 2 clock of its slot
-- ARGV  1 ticket, 2 payload, 3 TTL in ms, 4 not after (server us), 5 mode: "j" join, "a" asked before and in line,
--       "t" try, 6 block of tokens, 7 life of a place in ms, 8 ticket to give back or "", 9 its payload
-- reply "H" token block|now    this ticket holds
--       "Q" or "B" and now|remaining|holders|waiters|a hold     it stands in line / others hold
--       "L" now                the request came too late and did nothing
--       "F" what               the key is of another kind or format, and was not touched
-- Replays: a ticket that holds is told so, and its hold gets its full TTL; one that waits keeps its place.

local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)
if now > ARGV[4] then
  return 'L' .. now
end
-- The common case: nobody holds, nobody waits. Three short commands and no table.
if ARGV[5] ~= 'a' and ARGV[8] == '' and redis.call('SET', KEYS[1], ARGV[1] .. now .. ARGV[2], 'NX', 'PX', ARGV[3]) then
  local last = redis.pcall('GETSET', KEYS[2], now)
  if ARGV[6] == '1' and (not last or type(last) == 'string' and last < now) then
    return 'H' .. now .. '1|' .. now
  end
  -- A block, or a clock that is ahead of the time or was tampered with: the long way, from the start.
  redis.call('DEL', KEYS[1])
  if type(last) == 'string' then
    redis.call('SET', KEYS[2], last)
  elseif not last then
    redis.call('DEL', KEYS[2])
  end
end

--@include line

local ticket, payload, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local me = ticket .. payload

-- drop removes all that a ticket has; it tells whether there was anything.
local function drop(ticket, payload)
  return redis.call('ZREM', key, 'h' .. ticket .. payload, 't' .. ticket, 'q' .. ticket .. payload, 'l' .. ticket) > 0
end

-- The last in line, or else whatever is there: it tells whether the set is ours, and which place is the next.
local last = redis.pcall('ZREVRANGE', key, 0, 0, 'WITHSCORES')
if last.err then
  local value = redis.call('GET', key)
  local odd = foreign(value, ticket)
  if odd then
    return odd
  end
  local holder = string.sub(value, 1, 26)
  if holder == ticket then
    redis.call('PEXPIRE', key, ARGV[3])
    return 'H' .. string.sub(value, 27, 42) .. ARGV[6] .. '|' .. now
  end
  if holder == ARGV[8] then
    redis.call('PEXPIRE', key, ARGV[3])
    local token = take(ARGV[6])
    redis.call('SET', key, ticket .. token .. payload, 'PX', ARGV[3])
    return 'H' .. token .. ARGV[6] .. '|' .. now
  end
  if ARGV[5] == 't' and string.byte(ticket, 3) == 120 then
    return 'B' .. now .. '|' .. redis.call('PTTL', key) .. '|1|0|' .. holder .. string.sub(value, 43)
  end
  unfold(value)
  last = {}
elseif last[1] then
  local odd = foreign(string.sub(last[1], 2), ticket)
  if odd then
    return odd
  end
end

local live, ends = holders()
for _, member in ipairs(live) do
  if member == 'h' .. me then
    redis.call('ZADD', key, ms + ttl, member)
    outlive(ms + ttl)
    return 'H' .. string.format('%016.0f', -redis.call('ZSCORE', key, 't' .. ticket)) .. ARGV[6] .. '|' .. now
  end
end
if ARGV[8] ~= '' and drop(ARGV[8], ARGV[9]) then
  live, ends = holders()
end

-- A ticket of an owner ("o" for "x") enters beside a hold of that owner.
local free = not live[1]
if free then
  free = hand_on(me, first(0)) == 'self'
  if not free then
    live, ends = holders()
  end
elseif string.byte(ticket, 3) == 111 and string.byte(live[1], 4) == 111 then
  local _, _, _, mine = parts(payload)
  local _, _, _, theirs = parts(string.sub(live[1], 28))
  free = mine == theirs
end
if free then
  local token = take(ARGV[6])
  if redis.call('EXISTS', key) == 0 then
    redis.call('SET', key, ticket .. token .. payload, 'PX', ARGV[3])
  else
    redis.call('ZREM', key, 'q' .. me, 'l' .. ticket)
    hold(ticket, payload, ms + ttl, token)
    outlive(ms + ttl)
  end
  return 'H' .. token .. ARGV[6] .. '|' .. now
end
if ARGV[5] == 't' then
  return 'B' .. describe(live, ends, redis.call('ZCOUNT', key, PLACES, '+inf'))
end

local life, place = ms + tonumber(ARGV[7]), tonumber(now)
if last[2] and tonumber(last[2]) >= place then
  place = tonumber(last[2]) + 1
end
local before
if redis.call('ZADD', key, 'NX', place, 'q' .. me, -life, 'l' .. ticket) == 2 then
  before = redis.call('ZCOUNT', key, PLACES, '+inf') - 1
else
  redis.call('ZADD', key, -life, 'l' .. ticket)
  before = redis.call('ZCOUNT', key, PLACES, '(' .. redis.call('ZSCORE', key, 'q' .. me))
end
outlive(life)
return 'Q' .. describe(live, ends, before)
