-- free: give a hold back, or a place in the queue, and let in who may hold then.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 queue, 4 watchers
-- ARGV  1 ticket, 2 payload, 3 server us before which nobody may enter (the end of a min hold), or "0", 4 life
--       of a place in ms; and perhaps 5 the id of a waiter that goes before all others
-- reply 1 there was a hold or a place, 0 there was none, "F" as for ask, "R" by    a caller with that label broke the hold:
--       what remained of it is removed, or ends at 3 if that is sooner
-- Replays find nothing of the ticket and change nothing. Commands that free memory come before those that need it.

--@include codes
--@untouched
local ticket, payload = ARGV[1], ARGV[2]
local state, clock, queue = KEYS[1], KEYS[2], KEYS[3]
local value = redis.pcall('GET', state)
local plain = type(value) == 'string' and string.sub(value, 1, TICKET) == ticket and string.byte(ticket, MODE_AT) == MODE_EXCLUSIVE and ARGV[3] == '0' and not ARGV[5]
local next
if plain then
  next = redis.call('ZRANGE', queue, '0', '0')[1]
  if not next then
    return redis.call('DEL', state)
  end
end
--@include time

-- The common case: all waiters joined lately, and the first of them excludes everybody too.
-- Few and short commands, no table, no function.
if plain and string.sub(next, 1, FRONT) == string.sub(ticket, 1, FRONT) and redis.call('ZCOUNT', queue, '0', time[1] - math.floor(ARGV[4] / 1000) + 1 .. '000000') == 0 then
  local claim, channel, from = string.match(next, '^(%d+):1:%d+:(%d+):%d+:%d+:()', PAYLOAD_AT) -- not of a fixed hold: see tell
  if claim and channel ~= '0' and string.byte(next, from) == MARK_PLAIN then
    channel = string.sub(next, from + 1, from + channel - 1)
    local heard = redis.pcall('PUBSUB', 'NUMSUB', channel)
    if not heard.err and heard[2] > 0 then
      local last = redis.pcall('GETSET', clock, now) -- refused when memory is used up: the long way frees some first
      --@touched
      if not last or type(last) == 'string' and #last == 16 and last < now then
        redis.call('SET', state, string.sub(next, 1, TICKET) .. now .. string.sub(next, PAYLOAD_AT), 'PX', claim)
        --@noevict clock
        --@noevict state
        redis.call('ZREM', queue, next, 'l' .. string.sub(next, 1, TICKET))
        redis.pcall('PUBLISH', channel, GRANTED .. string.sub(next, ID_AT, TICKET) .. now .. '1|' .. claim .. '|' .. now)
        return 1
      elseif type(last) == 'string' then
        redis.call('SET', clock, last)
      end
    end
  end
end

local life = tonumber(ARGV[4])
--@include holds
--@include publish
--@include messages
--@include queue
--@include evicted

-- prefer makes an open place the first.
local function prefer(id)
  local members = redis.call('ZRANGEBYSCORE', queue, PLACES, '+inf')
  for at, member in ipairs(members) do
    if at > 1 and string.sub(member, ID_AT, TICKET) == id then
      redis.call('ZADD', queue, 'XX', whole(redis.call('ZSCORE', queue, members[1]) - 1), member)
    end
  end
end

local odd = look(ticket)
if odd then
  return odd
end
if leave(ticket, payload) and not mine(ticket, payload) and not broken(ticket) then -- a kept place stays with an offer
  hand_on(nil, true)
  return 1
end
local left = math.ceil((tonumber(ARGV[3]) - tonumber(now)) / 1000)
local given, reply = ticket .. payload, 1
if not mine(ticket, payload) then
  given, reply = broken(ticket)
  if not given then
    readmit(ticket)
    return 0
  end
end
if left <= 0 then
  if ARGV[5] then
    prefer(ARGV[5])
  end
  if alone then
    redis.call('DEL', state)
    exclusive, alone = {}, nil
  else
    drop(given)
    look(ticket)
  end
  hand_on(nil, reply ~= 1)
  if string.byte(ticket, KIND_AT) == KIND_ELECTION and not exclusive[1] then -- an election without a leader
    changed()
  end
elseif reply == 1 then
  remain(given, 'k', '', left)
  tell_first()
else
  shorten(given, left)
  tell_first()
end
return reply
