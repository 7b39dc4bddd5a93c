-- ask: hold a name, or stand in line for it, or only look.
--
-- KEYS  1 state of the name, 2 clock of its slot
-- ARGV  1 ticket, 2 payload, 3 TTL in ms, 4 not after (server us), 5 mode: "j" join, "a" asked before and in line,
--       "t" try, 6 block of tokens, 7 life of a place in ms, 8 ticket to give back or ""
-- reply "H" token block|now    this ticket holds
--       "Q" or "B" and now|remaining|holders|waiters|a hold     it stands in line / others hold; one that joined a
--                              line is not told the remaining time (-1): it learns it when it asks again
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

local ticket, payload, ttl = ARGV[1], ARGV[2], ARGV[3]
local me = ticket .. payload

local function held(token)
  return 'H' .. token .. ARGV[6] .. '|' .. now
end

local string_was
local some = redis.pcall('ZRANGE', key, '-1', '-1')
if some.err then
  local value = redis.call('GET', key)
  local odd = foreign(value, ticket)
  if odd then
    return odd
  end
  local holder = string.sub(value, 1, 26)
  if holder == ticket then
    redis.call('PEXPIRE', key, ttl)
    return held(string.sub(value, 27, 42))
  end
  if holder == ARGV[8] then
    redis.call('PEXPIRE', key, ttl)
    local token = take(ARGV[6])
    redis.call('SET', key, ticket .. token .. payload, 'PX', ttl)
    return held(token)
  end
  string_was = redis.call('PTTL', key)
  if ARGV[5] == 't' and string.byte(ticket, 3) == 120 then
    return 'B' .. now .. '|' .. string_was .. '|1|0|' .. holder .. string.sub(value, 43)
  end
  -- The string of a single hold becomes the set, with the same expiry.
  if string_was < 0 then
    string_was = 86400000
  end
  redis.call('DEL', key)
  hold(holder, string.sub(value, 27, 42), string.sub(value, 43), string_was)
  outlive(ms + string_was)
elseif some[1] then
  local odd = foreign(string.sub(some[1], 2), ticket)
  if odd then
    return odd
  end
end

local live = holders()
for i, member in ipairs(live) do
  local holder = string.sub(member, 2, 27)
  if holder == ticket then
    redis.call('ZADD', key, string.format('%d', ms + ttl), member)
    outlive(ms + ttl)
    return held(string.sub(member, 28, 43))
  end
  if holder == ARGV[8] then
    redis.call('ZREM', key, member)
    table.remove(live, i)
    break
  end
end

-- A ticket of an owner ("o" for "x") enters beside a hold of that owner.
local free = not live[1]
if free then
  free = hand_on(me, first('0')) == 'self'
  if not free then
    live = holders()
  end
elseif string.byte(ticket, 3) == 111 and string.byte(live[1], 4) == 111 then
  local _, _, _, mine = parts(payload)
  local _, _, _, theirs = parts(string.sub(live[1], 44))
  free = mine == theirs
end
if free then
  local token = take(ARGV[6])
  if redis.call('EXISTS', key) == 0 then
    redis.call('SET', key, ticket .. token .. payload, 'PX', ttl)
  else
    redis.call('ZREM', key, 'q' .. me, 'l' .. ticket)
    hold(ticket, token, payload, ttl)
    outlive(ms + ttl)
  end
  return held(token)
end
if ARGV[5] == 't' then
  return 'B' .. describe(live, redis.call('ZCOUNT', key, PLACES, '+inf'))
end

local life = ms + ARGV[7]
if redis.call('ZADD', key, 'NX', now, 'q' .. me) == 1 then
  if redis.call('ZREVRANK', key, 'q' .. me) ~= 0 then -- the server's clock went back, or stands still
    local last = redis.call('ZRANGE', key, '-1', '-1', 'WITHSCORES')[2]
    redis.call('ZADD', key, string.format('%.0f', last + 1), 'q' .. me)
  end
  outlive(life)
  if not string_was then
    return 'Q' .. now .. '|-1|' .. #live .. '|' .. redis.call('ZCOUNT', key, PLACES, '+inf') - 1 .. '|' .. whose(live[1])
  end
else
  redis.call('ZADD', key, string.format('-%d', life), 'l' .. ticket)
  outlive(life)
end
return 'Q' .. describe(live, redis.call('ZCOUNT', key, PLACES, '(' .. redis.call('ZSCORE', key, 'q' .. me)))
