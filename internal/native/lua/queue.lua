-- queue: who waits, and handing over. The layout is in the package document. Includes holds and messages come before it, and life
-- is that of a place, in ms.

-- keeps is how many ms a kept place lives after an ask; nil of an ordinary one.
local function keeps(payload)
  if not string.find(payload, '^[%d/]+:%d+:%d+f?:%d+:%d+:0:') then
    return extra(payload, 'keep')
  end
end

-- admit makes a ticket hold.
local function admit(ticket, payload, token, ttl)
  local mode = string.byte(ticket, MODE_AT)
  if mode == MODE_SHARED then
    shares = shares + 1
  else
    table.insert(exclusive, ticket .. payload)
  end
  if mode == MODE_EXCLUSIVE or mode == MODE_ELECTION then
    alone = ticket .. token .. payload
    redis.call('SET', state, alone, 'PX', ttl)
  else
    ttl = tonumber(ttl)
    local weight, permits = demand(payload)
    local left = redis.call('PTTL', state) -- of a new set none
    if weight then
      capacity = capacity or permits
      local held = redis.call('ZSCORE', state, 'w') or 0
      put(ttl, left, ending(ticket, ttl), ticket .. payload, '-' .. token, 't' .. ticket, '-' .. whole(capacity), 'c', whole(held - weight), 'w')
    else
      put(ttl, left, ending(ticket, ttl), ticket .. payload, '-' .. token, 't' .. ticket)
    end
    lapsing(ticket, payload, ttl)
  end
  --@noevict state
  if string.byte(ticket, KIND_AT) == KIND_ELECTION then
    changed()
  end
end

-- close takes a kept place out of the way until its ticket asks again.
local function close(ticket, payload)
  local place, ends = redis.call('ZSCORE', queue, ticket .. payload), redis.call('ZSCORE', queue, 'l' .. ticket)
  redis.call('ZREM', queue, 'l' .. ticket) -- first: if it is refused, nothing is written
  redis.call('ZADD', queue, ends, ticket .. payload, whole(-CLOSED - place), 'n' .. ticket)
end

-- open puts a closed place back where it was.
local function open(ticket, payload)
  local ends, place = redis.call('ZSCORE', queue, ticket .. payload), redis.call('ZSCORE', queue, 'n' .. ticket)
  if place then
    redis.call('ZADD', queue, whole(-CLOSED - place), ticket .. payload, ends, 'l' .. ticket)
    redis.call('ZREM', queue, 'n' .. ticket)
  end
end

-- waiter_at is the waiter at a place in the queue, from 0.
local function waiter_at(at)
  return redis.call('ZRANGEBYSCORE', queue, PLACES, '+inf', 'LIMIT', at, '1')[1]
end

-- leave takes a waiter out of the queue, and with the last what the queue knows of a semaphore.
local function leave(ticket, payload)
  local was = redis.call('ZREM', queue, ticket .. payload, 'l' .. ticket, 'n' .. ticket) > 0
  if was and string.byte(ticket, KIND_AT) == KIND_SEMAPHORE and redis.call('ZCOUNT', queue, whole(1 - OUT), '+inf') == 1 then
    redis.call('ZREM', queue, 'c')
  end
  return was
end

-- forget takes out closed places whose life is over. No hand-over sees them.
local function forget()
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue, '-' .. whole(ms), '-1', 'LIMIT', '0', '64')) do
    if string.byte(member, COLON_AT) == COLON then
      leave(string.sub(member, 1, TICKET), string.sub(member, PAYLOAD_AT))
    end
  end
end

-- damaged tells whether a member is no waiter of ours: it was put there or changed by hand. No
-- hand-over looks at it.
local function damaged(member)
  local payload = string.sub(member, PAYLOAD_AT)
  local claim, block = parts(payload)
  return not claim or tonumber(claim) < 1 or #claim > 9 or #block > 7 or string.sub(member, 1, STAMP) ~= stamp or
    not string.find(member, '^..[xwos]:') or
    not string.find(payload, string.byte(member, KIND_AT) == KIND_SEMAPHORE and '^%d+/%d+/%d+:' or '^%d+:')
end

-- lives tells whether a waiter has shown life: when it joined, which is its place, or when it asked
-- since. Of a kept place each ask says when its life ends, the first as well.
local function lives(member, ticket, kept)
  if not kept and redis.call('ZSCORE', queue, member) / 1000 + life > ms then
    return true
  end
  local ends = redis.call('ZSCORE', queue, 'l' .. ticket)
  return ends and -ends > ms
end

-- attends tells whether a process waits at a kept place, as listens does. The server may take the
-- connection of a silent host for open, so a process that missed three asks does not wait there.
local function attends(ticket, kept, channel)
  local ends = redis.call('ZSCORE', queue, 'l' .. ticket)
  if ends and -ends - kept + life <= ms then
    return false
  end
  return listens(channel)
end

-- tell_first lets the first in the queue ask when the first of the holds is over, if one lapses. A
-- waiter that does not listen is passed over, as in hand_on; a waiter that never does asks often.
local function tell_first()
  if not lapses() then
    return
  end
  local left
  if alone then
    left = redis.call('PTTL', state)
  else
    left = redis.call('ZRANGEBYSCORE', state, '1', '+inf', 'WITHSCORES', 'LIMIT', '0', '1')[2] % SHARED - ms
  end
  for at = 0, 63 do
    local waiter = waiter_at(at)
    if not waiter then
      return
    end
    local payload = string.sub(waiter, PAYLOAD_AT)
    local _, _, channel = parts(payload)
    local wrong = damaged(waiter)
    if channel == '' and not wrong then
      return
    end
    local kept = keeps(payload)
    local heard
    if wrong then
      heard = false
    elseif kept then
      heard = attends(string.sub(waiter, 1, TICKET), kept, channel)
    else
      heard = listens(channel)
    end
    if heard ~= false then
      publish(channel, ASK .. string.sub(waiter, ID_AT, TICKET) .. whole(math.max(0, left)))
      if heard or not kept then
        return
      end
    end
  end
end

-- hand_on lets in all that may hold now, from the head of the queue, and tells each alone; nobody
-- passes the first that may not. A waiter that shows no life is taken out, although its host may
-- seem to listen until the server misses it. A waiter whose process does not hear us is passed over
-- for those that do, and keeps its place. If nobody could be let in and told, the first of those
-- passed over is let in untold, unless the caller waits itself or a waiter got in by asking.
--
-- A kept place that is heard is offered the name: it stays in the queue, closed. One that is not
-- heard is passed over, whether it may hold or not; if it may, it is closed. Where the server
-- cannot tell, it is passed over too, and nudged if the name is left free.
--
--   self   the caller, as "ticket payload", or nil
--   moved  the first waiter may be another than before, and is told when a hold or remainder lapses
--   asked  a waiter got in by asking: those that do not hear us ask for themselves
--
-- It returns true if it is the caller's turn; then nothing was changed for the caller.
local function hand_on(self, moved, asked)
  local at, unheard, stopped, beyond, unsure = 0, nil, false, true, {}
  local waits = self and redis.call('ZSCORE', queue, self)
  while at < 64 do
    local member = waiter_at(at)
    if not member then
      beyond = false
      break
    end
    local ticket, payload = string.sub(member, 1, TICKET), string.sub(member, PAYLOAD_AT)
    local claim, block, channel = parts(payload)
    local kept = keeps(payload)
    local wrong = damaged(member)
    local heard = not kept or member == self or not wrong and attends(ticket, kept, channel)
    if member ~= self and not lives(member, ticket, kept) then
      moved = leave(ticket, payload)
    elseif wrong then
      at = at + 1
    elseif heard == false and enters(ticket, payload) then
      close(ticket, payload)
    elseif not heard then
      if heard == nil then
        table.insert(unsure, member)
      end
      at = at + 1
    elseif not enters(ticket, payload) then
      stopped = true
      break
    elseif member == self then
      return true
    else
      if kept or channel == '' or listens(channel) ~= false then
        local token = take(block)
        admit(ticket, payload, token, claim)
        if kept then
          close(ticket, payload)
          moved = true
        else
          moved = leave(ticket, payload)
        end
        if channel ~= '' then
          publish(channel, GRANTED .. string.sub(ticket, ID_AT) .. token .. block .. '|' .. claim .. '|' .. now)
        end
        unheard = false
      else
        if unheard == nil then
          unheard = member
        end
        at = at + 1
      end
    end
  end
  if self and (beyond or not waits) and not stopped and enters(string.sub(self, 1, TICKET), string.sub(self, PAYLOAD_AT)) then
    return true
  end
  if unheard and not waits and not asked then
    local ticket, payload = string.sub(unheard, 1, TICKET), string.sub(unheard, PAYLOAD_AT)
    local claim, block = parts(payload)
    admit(ticket, payload, take(block), claim)
    moved = leave(ticket, payload)
  end
  for _, member in ipairs(unsure) do
    local ticket, payload = string.sub(member, 1, TICKET), string.sub(member, PAYLOAD_AT)
    if enters(ticket, payload) then
      local _, _, channel = parts(payload)
      publish(channel, ASK .. string.sub(ticket, ID_AT) .. '0')
    end
  end
  if moved then
    tell_first()
  end
  return false
end

-- count is how many wait.
local function count()
  return redis.call('ZCOUNT', queue, PLACES, '+inf')
end

-- describe says who holds and how many wait before a caller: now|remaining|holders|before|a hold or
-- a remainder.
local function describe(before)
  local member, count, left = holder()
  return now .. '|' .. whole(left) .. '|' .. count .. '|' .. before .. '|' .. member
end
