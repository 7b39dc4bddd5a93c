-- ask: hold a name, or stand in the queue for it, or only look.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 queue, 4 watchers
-- ARGV  1 ticket, 2 payload, 3 TTL in ms, 4 not after (server us), 5 how: "j" join, "a" asked before and in the queue,
--       "t" try; of a kept place "k" join, "a", "l" the last ask of a wait; 6 block of tokens, 7 life of a place in ms,
--       not of a kept one; and perhaps 8 a ticket to give back, 9 its payload
-- reply "H" token block|now    this ticket holds
--       "Q" or "B" and now|remaining|holders|waiters|a hold     it stands in the queue / others hold; the hold with its token
--       "L" now                the request came too late and did nothing
--       "F" what               the key is of another kind or format, and was not touched; "f" what: the queue is
--       "M" permits            the semaphore is in use with another number of permits
--       "U"                    the owner shares the name and now asks to exclude others
--       "R" by                 the ticket held, and a caller with that label broke its hold
--       "E" by                 a caller with that label took the ticket out of the queue
-- Replays: a ticket that holds is told so, and its hold gets its full TTL; one that waits keeps its place; one whose hold was
-- broken is told "R"; one of whose hold a min hold is left is told "B", and so is "a" or "l" of a kept place that is gone.

--@include codes
--@include time
--@untouched
if now > ARGV[4] then
  return 'L' .. now
end
local ticket, payload, ttl = ARGV[1], ARGV[2], ARGV[3]
local state, clock, queue = KEYS[1], KEYS[2], KEYS[3]

-- The common cases of a lock that excludes everybody: nobody holds and nobody waits; or one holds,
-- and this one joins the queue. Few and short commands, no table, no function.
if string.byte(ticket, MODE_AT) == MODE_EXCLUSIVE and ARGV[5] ~= 'a' and ARGV[5] ~= 'l' and not ARGV[8] then
  if redis.call('EXISTS', queue) == 0 and redis.call('SET', state, ticket .. now .. payload, 'NX', 'PX', ttl) then
    --@touched
    local last = redis.pcall('GETSET', clock, now)
    if ARGV[6] == '1' and (not last or type(last) == 'string' and #last == 16 and last < now) then
      --@noevict clock
      --@noevict state
      return 'H' .. now .. '1|' .. now
    end
    -- A block, or a clock that is ahead of the time or was tampered with: the long way, from the
    -- start.
    redis.call('DEL', state)
    if type(last) == 'string' then
      redis.call('SET', clock, last)
    elseif not last then
      redis.call('DEL', clock)
    end
  --@untouched
  elseif ARGV[5] == 'j' then
    local self = ticket .. payload
    local holder = redis.pcall('GET', state)
    if type(holder) == 'string' and string.sub(holder, 1, STAMP) == string.sub(ticket, 1, STAMP) and string.byte(holder, COLON_AT) == COLON
      and string.sub(holder, COLON_AT, TICKET) ~= string.sub(ticket, COLON_AT) and not string.find(holder, HEARS, 1, true)
      and redis.call('ZADD', queue, 'NX', now, self) == 1 then
      --@touched
      if redis.call('ZREVRANK', queue, self) == 0 then
        if redis.call('PTTL', queue) < ARGV[7] + 0 then -- a kept place may need it for longer
          redis.call('PEXPIRE', queue, ARGV[7] + 5000)
        end
        return 'Q' .. now .. '|' .. redis.call('PTTL', state) .. '|1|' .. redis.call('ZCOUNT', queue, '1', '+inf') - 1 .. '|' .. holder
      end
      redis.call('ZREM', queue, self) -- the server's clock went back, or stands still
    end
  end
end

local life = tonumber(ARGV[7])
--@include holds
--@include publish
--@include recall
--@include messages
--@include queue
--@include evicted

--@untouched
local self = ticket .. payload
local function held(token)
  return 'H' .. token .. ARGV[6] .. '|' .. now
end

local odd = look(ticket)
if odd then
  return odd
end
local kept = keeps(payload)
local token = mine(ticket, payload)
if token then
  prolong(ticket, payload, tonumber(ttl))
  if kept then -- the place stayed while the name was offered
    leave(ticket, payload)
  end
  return held(token)
end
local rest = remainder(ticket)
if rest then -- it comes late: the hold was released or broken
  if kept then
    leave(ticket, payload)
  end
  local by = broken_by(rest)
  return by and 'R' .. by or 'B' .. describe(count())
end
local by = ARGV[5] ~= 't' and evicted(ticket)
if by then
  if leave(ticket, payload) then -- it joined again
    hand_on(nil, true)
  end
  return 'E' .. by
end
if ARGV[5] == 'a' then
  sweep()
end
-- Also for a ticket that need not wait: a key that is no queue refuses before anything is done.
local waits = redis.call('ZSCORE', queue, self)
if kept and ARGV[5] ~= 'k' and (not waits or -(redis.call('ZSCORE', queue, 'l' .. ticket) or waits) <= ms) then
  return 'B' .. describe(count())
end
local _, permits = demand(payload)
if permits and capacity and capacity ~= permits and not waits then -- a waiter from before a Resize goes on
  return 'M' .. whole(capacity)
end
local given = ARGV[8] and (mine(ARGV[8], ARGV[9]) and ARGV[8] .. ARGV[9] or broken(ARGV[8]))
if given and alone then
  redis.call('DEL', state)
  exclusive, alone = {}, nil
elseif given then
  drop(given)
  look(ticket)
end

--@touched
if kept then
  forget()
  if waits then
    open(ticket, payload)
  end
end
-- Beside a hold of its own owner a ticket enters although others wait; else when it is its turn.
local beside = (exclusive[1] or reads(payload)) and enters(ticket, payload)
if beside or hand_on(self) then
  token = take(ARGV[6])
  admit(ticket, payload, token, ttl)
  if waits and leave(ticket, payload) then
    hand_on(nil, true, true)
  elseif beside then
    tell_first()
  end
  return held(token)
end
if not waits and string.byte(ticket, MODE_AT) == MODE_OWNER and reads(payload) then
  return 'U'
end
-- The holds that keep it out may be unused, or their holders may let go.
local members = exclusive
if shares > 0 and string.byte(ticket, MODE_AT) ~= MODE_SHARED then
  members = redis.call('ZRANGEBYSCORE', state, '1', '+inf')
end
for _, member in ipairs(members) do
  recall(string.sub(member, 1, TICKET), string.sub(member, PAYLOAD_AT))
end
if ARGV[5] == 't' then
  return 'B' .. describe(count())
end

if not waits then
  redis.call('ZADD', queue, now, self)
  if redis.call('ZREVRANK', queue, self) ~= 0 then -- the server's clock went back, or stands still
    local behind = redis.call('ZRANGE', queue, '-1', '-1', 'WITHSCORES')[2]
    redis.call('ZADD', queue, whole(behind + 1), self)
  end
end
local lasts = tonumber(kept or life)
if waits or kept then
  redis.call('ZADD', queue, '-' .. whole(ms + lasts), 'l' .. ticket)
end
if capacity then
  redis.call('ZADD', queue, -capacity, 'c')
end
if redis.call('PTTL', queue) < lasts then
  redis.call('PEXPIRE', queue, whole(lasts + 5000))
end
local place = redis.call('ZSCORE', queue, self) or now
if kept and ARGV[5] ~= 'a' then
  close(ticket, payload)
end
if ARGV[5] == 'l' then -- it may have kept others out until now
  hand_on(nil, true, true)
end
-- A clock that is set back in the middle of a script may have ended the queue: then the next ask
-- joins it anew.
return 'Q' .. describe(redis.call('ZCOUNT', queue, PLACES, '(' .. place))
