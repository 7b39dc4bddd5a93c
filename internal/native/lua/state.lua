-- The code that the scripts share beyond their short paths: who holds, who waits, and handing on. The layout is in the package
-- document. They expect letters, now (server us, 16 digits) life (of a place, in ms), and the keys 1 state, 2 clock,
-- 3 queue, 4 watchers.
--
-- Scores are read only where they are needed: Redis 7.0 writes each with printf("%.17g"), which costs more than any
-- command here.

local state, clock, queue, watchers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ms = math.floor(tonumber(now) / 1000)
local SHARED, PLACES = 10000000000000, '1' -- everything else in the queue is negative
local CLOSED, OUT = 1000000000000000, 500000000000000 -- what keeps closed places and evicted tickets apart from the ends of lives

-- The holds, as look found them and admit changed them: those that exclude, as "ticket payload";
-- how many share; and the string of a hold that excludes everybody. Capacity is how many permits
-- there are, also of a set that went a moment ago.
local exclusive, shares, alone, capacity
local stamp -- the format and the kind of all tickets here

local function whole(number)
  return string.format('%.0f', number)
end

--@include payload

-- demand is what a payload wants of a semaphore, and how many permits it thinks there are; nil for
-- other kinds.
local function demand(payload)
  local weight, permits = string.match(payload, '^%d+/(%d+)/(%d+):')
  return tonumber(weight), tonumber(permits)
end

-- keeps is how many ms a kept place lives after an ask; nil of an ordinary one.
local function keeps(payload)
  if not string.find(payload, '^[%d/]+:%d+:%d+f?:%d+:%d+:0:') then
    return extra(payload, 'keep')
  end
end

-- drop takes a hold that is there out of the set, and with the last the set. A refusal in between
-- leaves what is a set of holds: it must not keep others out for ever.
local function drop(member)
  if redis.call('ZCOUNT', state, '1', '+inf') == 1 then
    redis.call('DEL', state)
    return
  end
  local weight = demand(string.sub(member, 27))
  local held = weight and redis.call('ZSCORE', state, 'w')
  redis.call('ZREM', state, member, 't' .. string.sub(member, 1, 26))
  if weight then
    redis.call('ZADD', state, whole(held + weight), 'w')
  end
end

--@untouched
-- look reads who holds now; holds whose time is over are taken out. It returns, in the words of a
-- reply, what else the name is used for, and touches nothing then. A second call
-- reads nothing that the first did not read.
local function look(ticket)
  local value = redis.pcall('GET', state)
  local sample
  exclusive, shares, alone, stamp = {}, 0, nil, string.sub(ticket, 1, 2)
  if type(value) == 'string' then
    sample, alone = value, value
    exclusive[1] = string.sub(value, 1, 26) .. string.sub(value, 43)
  elseif value and not string.find(value.err, 'WRONGTYPE', 1, true) then
    redis.call('GET', state) -- the server's own refusal
  elseif value then
    sample = redis.call('ZRANGE', state, '-1', '-1')[1]
  else
    local tail = redis.call('ZRANGE', queue, '-2', '-1')
    sample = tail[#tail] == 'c' and tail[1] or tail[#tail] -- "c" is last where all places are closed
    if sample and string.find(sample, EVICTED) then -- it uses no name
      sample = nil
    end
  end
  if sample and (string.sub(sample, 1, 2) ~= string.sub(ticket, 1, 2) or string.byte(sample, 4) ~= COLON or #sample < 34) then
    return (value and 'F' or 'f') .. string.sub(sample, 1, 4)
  end
  if value and not alone then
    for from, to in pairs({['1'] = whole(ms), [whole(SHARED)] = whole(SHARED + ms)}) do
      if redis.call('ZCOUNT', state, from, to) > 0 then
        for _, over in ipairs(redis.call('ZRANGEBYSCORE', state, from, to)) do
          drop(over)
        end
      end
    end
    exclusive = redis.call('ZRANGEBYSCORE', state, '1', whole(SHARED - 1))
    shares = redis.call('ZCOUNT', state, whole(SHARED), '+inf')
  end
  if string.byte(ticket, 2) == KIND_SEMAPHORE then -- the queue knows too, because holds may end by themselves
    local permits = value and redis.call('ZSCORE', state, 'c') or redis.call('ZSCORE', queue, 'c')
    capacity = permits and -permits or capacity
  end
end

-- token_of is the token of a hold of the set.
local function token_of(ticket)
  return string.format('%016.0f', -(redis.call('ZSCORE', state, 't' .. ticket) or 0))
end

-- mine is the token of a ticket that holds; nil when it does not.
local function mine(ticket, payload)
  if alone then
    return string.sub(alone, 1, 26) == ticket and string.sub(alone, 27, 42) or nil
  end
  if (exclusive[1] or shares > 0) and redis.call('ZSCORE', state, ticket .. payload) then
    return token_of(ticket)
  end
end

-- remainders are what is left of holds, each as "ticket payload", the first to end first.
local function remainders()
  local found, members = {}, exclusive
  local over = shares > 0 and redis.call('ZSCORE', state, 'r')
  if over and -over > ms then
    members = redis.call('ZRANGEBYSCORE', state, '1', '+inf')
  end
  for _, member in ipairs(members) do
    if string.byte(member, 3) == MODE_REMAINDER then
      table.insert(found, member)
    end
  end
  return found
end

-- remainder is what is left of the hold of a ticket, as "ticket payload"; nil when nothing is.
local function remainder(ticket)
  for _, member in ipairs(remainders()) do
    if string.sub(member, 1, 26) == leftover(ticket) then
      return member
    end
  end
end

-- broken is the remainder of a ticket's hold that was broken, and the reply that says so; nil when
-- it was not.
local function broken(ticket)
  local left = remainder(ticket)
  local by = left and broken_by(left)
  if by then
    return left, 'R' .. by
  end
end

--@touched

-- ending is the score of a hold that lasts for so many ms from now.
local function ending(ticket, ttl)
  return whole(ms + ttl + (string.byte(ticket, 3) == MODE_SHARED and SHARED or 0))
end

-- put writes members of the set, all in one command, and lets the set, which has so many ms left,
-- last no shorter than them.
local function put(ttl, left, ...)
  redis.call('ZADD', state, ...)
  if left < ttl then
    redis.call('PEXPIRE', state, whole(ttl))
  end
end

-- lapsing notes when a hold that shares, and is not renewed, is over.
local function lapsing(ticket, payload, ttl)
  if string.byte(ticket, 3) == MODE_SHARED and fixed(payload) then
    redis.call('ZADD', state, whole(math.min(redis.call('ZSCORE', state, 'f') or 0, -(ms + ttl))), 'f')
  end
end

-- last lets a hold that is there last for so many ms from now, and the set no shorter.
local function last(ticket, payload, ttl)
  if alone then
    redis.call('PEXPIRE', state, ttl)
    return
  end
  put(ttl, redis.call('PTTL', state), ending(ticket, ttl), ticket .. payload)
  lapsing(ticket, payload, ttl)
end

-- remain makes a hold a remainder: it excludes others as before, for so many ms, or as long as the
-- hold had left, but no caller can renew or enter it. Why and by are its extras.
local function remain(member, why, by, left)
  local ticket, payload = string.sub(member, 1, 26), string.sub(member, 27)
  local token, rest, shared = mine(ticket, payload), leftover(ticket), string.byte(ticket, 3) == MODE_SHARED
  local front, channel, owner, extras, text = string.match(payload, '^([%d/]+:%d+:%d+f?:)(%d+):(%d+):(%d+):(.*)$')
  local more, at = 'why:' .. #why .. ':' .. why .. 'by:' .. #by .. ':' .. by, channel + owner + extras
  payload = front .. channel .. ':' .. owner .. ':' .. whole(extras + #more) .. ':' ..
    string.sub(text, 1, at) .. more .. string.sub(text, at + 1)
  for i, other in ipairs(exclusive) do
    if other == member then
      exclusive[i] = rest .. payload
    end
  end
  if alone and left then
    alone = rest .. token .. payload
    redis.call('PEXPIRE', state, whole(left))
    redis.call('SET', state, alone, 'KEEPTTL')
  elseif alone then
    left = math.max(1, redis.call('PTTL', state))
    redis.call('DEL', state)
    alone = nil
    put(left, 0, whole(ms + left), rest .. payload, '-' .. token, 't' .. rest)
  else
    local ends = left and ms + left or redis.call('ZSCORE', state, member) % SHARED
    -- It frees memory when it needs some: a command that does not need any comes first, or the
    -- server may refuse.
    redis.call('PEXPIRE', state, whole(math.max(redis.call('PTTL', state) + 1, ends - ms)))
    if shared then
      local all_over = math.min(redis.call('ZSCORE', state, 'r') or 0, -ends)
      redis.call('ZADD', state, whole(ends + SHARED), rest .. payload, '-' .. token, 't' .. rest, whole(all_over), 'r')
    else
      redis.call('ZADD', state, whole(ends), rest .. payload, '-' .. token, 't' .. rest)
    end
    redis.call('ZREM', state, member, 't' .. ticket)
  end
end

-- shorten lets a remainder end in so many ms, if that is sooner.
local function shorten(member, left)
  local ends = redis.call('ZSCORE', state, member)
  local base = ends - ends % SHARED
  redis.call('ZADD', state, 'XX', whole(math.min(ends, base + ms + left)), member)
end

-- take draws a token and reserves the block behind it: larger than every one before, and not behind
-- the time. A clock that holds anything but a number of ours, below 2^53 with room for every block,
-- raises an error and stays.
local function take(block)
  local up_to = now
  if block ~= '1' then
    up_to = string.format('%016.0f', tonumber(now) + tonumber(block) - 1)
  end
  local largest = redis.pcall('GETSET', clock, up_to)
  if type(largest) == 'table' and not string.find(largest.err, 'WRONGTYPE', 1, true) then
    redis.call('GETSET', clock, up_to) -- the server's own refusal
  end
  if not largest or type(largest) == 'string' and #largest == 16 and largest < now then
    return now
  end
  if type(largest) == 'string' then
    redis.call('SET', clock, largest)
  end
  local known = type(largest) == 'string' and string.match(largest, '^%d+$') and #largest <= 16 and tonumber(largest)
  if not known or known > 9007199254000000 then
    error('holdfast: the key ' .. clock .. ' holds no token of ours')
  end
  local token = math.max(known + 1, tonumber(now)) -- one of fewer digits may be behind the time
  redis.call('SET', clock, string.format('%016.0f', token + tonumber(block) - 1))
  return string.format('%016.0f', token)
end

-- publish tells a channel. Its mark says how: "p" plain, "c" plain in a cluster, "s" sharded.
local function publish(channel, message)
  redis.pcall(string.byte(channel) == MARK_SHARDED and 'SPUBLISH' or 'PUBLISH', string.sub(channel, 2), message)
end

-- listens tells whether anybody hears a channel; nil where the server cannot tell. It is asked
-- before a message goes out, never read from the count of PUBLISH: a grant that was sent cannot be
-- taken back. In a cluster the count is that of one node and says nothing.
local function listens(channel)
  local mark = string.byte(channel)
  if mark == MARK_CLUSTER then
    return nil
  end
  local heard = redis.pcall('PUBSUB', mark == MARK_SHARDED and 'SHARDNUMSUB' or 'NUMSUB', string.sub(channel, 2))
  if heard.err then
    return nil
  end
  return heard[2] > 0
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

-- changed tells all watchers, once.
local function changed()
  local all = redis.call('HGETALL', watchers)
  for at = 1, #all, 2 do
    publish(all[at + 1], '3N' .. all[at] .. '0')
  end
  redis.call('DEL', watchers)
end

-- enters tells whether a ticket may hold beside the holds and remainders that there are: none;
-- those that share, if it shares too and its weight fits; those of its own owner, if a hold among
-- them excludes.
local function enters(ticket, payload)
  if exclusive[1] then
    local _, _, _, owner = parts(payload)
    local held = false
    for _, member in ipairs(exclusive) do
      local _, _, _, theirs = parts(string.sub(member, 27))
      if owner == '' or owner ~= theirs then
        return false
      end
      held = held or string.byte(member, 3) ~= MODE_REMAINDER
    end
    return held
  end
  if shares == 0 or string.byte(ticket, 3) ~= MODE_SHARED then
    return shares == 0
  end
  local weight = demand(payload)
  return not weight or weight - redis.call('ZSCORE', state, 'w') <= capacity
end

-- reads tells whether the owner of a ticket, if it has one, shares the name.
local function reads(payload)
  local _, _, _, owner = parts(payload)
  if owner == '' or shares == 0 then
    return false
  end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', state, whole(SHARED), '+inf')) do
    local _, _, _, theirs = parts(string.sub(member, 27))
    if theirs == owner and string.byte(member, 3) ~= MODE_REMAINDER then
      return true
    end
  end
  return false
end

-- admit makes a ticket hold.
local function admit(ticket, payload, token, ttl)
  local mode = string.byte(ticket, 3)
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
  if string.byte(ticket, 2) == KIND_ELECTION then
    changed()
  end
end

-- first is the waiter at a place in the queue, from 0.
local function first(at)
  return redis.call('ZRANGEBYSCORE', queue, PLACES, '+inf', 'LIMIT', at, '1')[1]
end

-- leave takes a waiter out of the queue, and with the last what the queue knows of a semaphore.
local function leave(ticket, payload)
  local was = redis.call('ZREM', queue, ticket .. payload, 'l' .. ticket, 'n' .. ticket) > 0
  if was and string.byte(ticket, 2) == KIND_SEMAPHORE and redis.call('ZCOUNT', queue, whole(1 - OUT), '+inf') == 1 then
    redis.call('ZREM', queue, 'c')
  end
  return was
end

-- forget takes out closed places whose life is over. No hand-over sees them.
local function forget()
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue, '-' .. whole(ms), '-1', 'LIMIT', '0', '64')) do
    if string.byte(member, 4) == COLON then
      leave(string.sub(member, 1, 26), string.sub(member, 27))
    end
  end
end

-- damaged tells whether a member is no waiter of ours: it was put there or changed by hand. No
-- hand-over looks at it.
local function damaged(member)
  local payload = string.sub(member, 27)
  local claim, block = parts(payload)
  return not claim or tonumber(claim) < 1 or #claim > 9 or #block > 7 or string.sub(member, 1, 2) ~= stamp or
    not string.find(member, '^..[xwos]:') or
    not string.find(payload, string.byte(member, 2) == KIND_SEMAPHORE and '^%d+/%d+/%d+:' or '^%d+:')
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

-- lapses tells whether a hold or a remainder will end by itself, without a message to those that
-- wait.
local function lapses()
  for _, member in ipairs(exclusive) do
    if string.byte(member, 3) == MODE_REMAINDER or fixed(string.sub(member, 27)) then
      return true
    end
  end
  for _, sort in ipairs(shares > 0 and {'r', 'f'} or {}) do
    local all_over = redis.call('ZSCORE', state, sort)
    if all_over and -all_over > ms then
      return true
    end
  end
  return false
end

-- tell lets the first in the queue ask when the first of the holds is over, if one lapses. A waiter
-- that does not listen is passed over, as in hand_on; a waiter that never does asks often.
local function tell()
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
    local waiter = first(at)
    if not waiter then
      return
    end
    local payload = string.sub(waiter, 27)
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
      heard = attends(string.sub(waiter, 1, 26), kept, channel)
    else
      heard = listens(channel)
    end
    if heard ~= false then
      publish(channel, '3N' .. string.sub(waiter, 5, 26) .. whole(math.max(0, left)))
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
-- passed over is let in untold, unless the caller waits itself.
--
-- A kept place that is heard is offered the name: it stays in the queue, closed. One that is not
-- heard is passed over, whether it may hold or not; if it may, it is closed. Where the server
-- cannot tell, it is passed over too, and nudged if the name is left free.
--
--   self   the caller, as "ticket payload", or nil; true says that it is the caller's turn, and
--          that nothing was changed for it
--   moved  the first waiter may be another than before, and is told when a hold or remainder lapses
--   asked  a waiter got in by asking: those that do not hear us ask for themselves
local function hand_on(self, moved, asked)
  local at, unheard, stopped, beyond, unsure = 0, nil, false, true, {}
  local waits = self and redis.call('ZSCORE', queue, self)
  while at < 64 do
    local member = first(at)
    if not member then
      beyond = false
      break
    end
    local ticket, payload = string.sub(member, 1, 26), string.sub(member, 27)
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
          publish(channel, '3G' .. string.sub(ticket, 5) .. token .. block .. '|' .. claim .. '|' .. now)
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
  if self and (beyond or not waits) and not stopped and enters(string.sub(self, 1, 26), string.sub(self, 27)) then
    return true
  end
  if unheard and not waits and not asked then
    local ticket, payload = string.sub(unheard, 1, 26), string.sub(unheard, 27)
    local claim, block = parts(payload)
    admit(ticket, payload, take(block), claim)
    moved = leave(ticket, payload)
  end
  for _, member in ipairs(unsure) do
    local ticket, payload = string.sub(member, 1, 26), string.sub(member, 27)
    if enters(ticket, payload) then
      local _, _, channel = parts(payload)
      publish(channel, '3N' .. string.sub(ticket, 5) .. '0')
    end
  end
  if moved then
    tell()
  end
  return false
end

-- count is how many wait.
local function count()
  return redis.call('ZCOUNT', queue, PLACES, '+inf')
end

-- holder is a hold, or else a remainder, as "ticket token payload", how many of its sort there are,
-- and how many ms are left until somebody may be let in: of holds that exclude until the first is
-- over, else until anything is.
local function holder()
  if alone then
    return alone, 1, redis.call('PTTL', state)
  end
  local count = #exclusive + shares
  if count == 0 then
    return '', 0, 0
  end
  local members = exclusive[1] and exclusive or redis.call('ZRANGEBYSCORE', state, whole(SHARED), '+inf', 'LIMIT', '0', '1')
  local member, rest = members[1], #remainders()
  if rest > 0 and rest < count then
    count = count - rest
    for _, other in ipairs(redis.call('ZRANGEBYSCORE', state, '1', '+inf')) do
      if string.byte(other, 3) ~= MODE_REMAINDER then
        member = other
        break
      end
    end
  end
  local ticket = string.sub(member, 1, 26)
  local token = token_of(ticket)
  local ends = tonumber(redis.call('ZSCORE', state, member))
  if ends >= SHARED and member ~= members[1] then
    ends = redis.call('ZSCORE', state, members[1])
  end
  return ticket .. token .. string.sub(member, 27), count, ends % SHARED - ms
end

-- describe says who holds and how many wait before a caller: now|remaining|holders|before|a hold or
-- a remainder.
local function describe(before)
  local member, count, left = holder()
  return now .. '|' .. whole(left) .. '|' .. count .. '|' .. before .. '|' .. member
end
