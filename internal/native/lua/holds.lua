-- holds: who holds. The layout is in the package document. Includes codes and time come before it, and the keys are 1 state,
-- 2 clock, 3 queue, 4 watchers.
--
-- Scores are read only where they are needed: Redis 7.0 writes each with printf("%.17g"), which costs more than any
-- command here.

local state, clock, queue, watchers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ms = math.floor(tonumber(now) / 1000)

-- The holds, as look found them and admit changed them: those that exclude, as "ticket payload";
-- how many share; and the string of a hold that excludes everybody. Capacity is how many permits
-- there are, also of a set that went a moment ago.
local exclusive, shares, alone, capacity
local stamp -- the format and the kind of all tickets here

--@include common
--@include payload

-- demand is what a payload wants of a semaphore, and how many permits it thinks there are; nil for
-- other kinds.
local function demand(payload)
  local weight, permits = string.match(payload, '^%d+/(%d+)/(%d+):')
  return tonumber(weight), tonumber(permits)
end

-- drop takes a hold that is there out of the set, and with the last the set. A refusal in between
-- leaves what is a set of holds: it must not keep others out for ever.
local function drop(member)
  if redis.call('ZCOUNT', state, '1', '+inf') == 1 then
    redis.call('DEL', state)
    return
  end
  local weight = demand(string.sub(member, PAYLOAD_AT))
  local held = weight and redis.call('ZSCORE', state, 'w')
  redis.call('ZREM', state, member, 't' .. string.sub(member, 1, TICKET))
  if weight then
    redis.call('ZADD', state, whole(held + weight), 'w')
  end
end

--@untouched
-- look reads who holds now; holds whose time is over are taken out. If the name is used for
-- something else, look returns that in the words of a reply, and has changed nothing. A second call
-- needs no other permission.
local function look(ticket)
  local value = redis.pcall('GET', state)
  local sample
  exclusive, shares, alone, stamp = {}, 0, nil, string.sub(ticket, 1, STAMP)
  if type(value) == 'string' then
    sample, alone = value, value
    exclusive[1] = string.sub(value, 1, TICKET) .. string.sub(value, REST_AT)
  elseif value and not wrong(value) then
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
  if sample and (string.sub(sample, 1, STAMP) ~= string.sub(ticket, 1, STAMP) or string.byte(sample, COLON_AT) ~= COLON or #sample < SHORTEST) then
    return (value and 'F' or 'f') .. string.sub(sample, 1, FRONT)
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
  if string.byte(ticket, KIND_AT) == KIND_SEMAPHORE then -- the queue knows too, because holds may end by themselves
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
    return string.sub(alone, 1, TICKET) == ticket and string.sub(alone, TOKEN_AT, TOKEN) or nil
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
    if string.byte(member, MODE_AT) == MODE_REMAINDER then
      table.insert(found, member)
    end
  end
  return found
end

-- remainder is what is left of the hold of a ticket, as "ticket payload"; nil when nothing is.
local function remainder(ticket)
  for _, member in ipairs(remainders()) do
    if string.sub(member, 1, TICKET) == leftover(ticket) then
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
  return whole(ms + ttl + (string.byte(ticket, MODE_AT) == MODE_SHARED and SHARED or 0))
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
  if string.byte(ticket, MODE_AT) == MODE_SHARED and fixed(payload) then
    redis.call('ZADD', state, whole(math.min(redis.call('ZSCORE', state, 'f') or 0, -(ms + ttl))), 'f')
  end
end

-- prolong lets a hold that is there last for so many ms from now, and the set no shorter.
local function prolong(ticket, payload, ttl)
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
  local ticket, payload = string.sub(member, 1, TICKET), string.sub(member, PAYLOAD_AT)
  local token, rest, shared = mine(ticket, payload), leftover(ticket), string.byte(ticket, MODE_AT) == MODE_SHARED
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
  --@noevict state
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
  if type(largest) == 'table' and not wrong(largest) then
    redis.call('GETSET', clock, up_to) -- the server's own refusal
  end
  if not largest or type(largest) == 'string' and #largest == 16 and largest < now then
    --@noevict clock
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
  --@noevict clock
  return string.format('%016.0f', token)
end

-- enters tells whether a ticket may hold beside the holds and remainders that there are: none;
-- those that share, if it shares too and its weight fits; those of its own owner, if a hold among
-- them excludes.
local function enters(ticket, payload)
  if exclusive[1] then
    local _, _, _, owner = parts(payload)
    local held = false
    for _, member in ipairs(exclusive) do
      local _, _, _, theirs = parts(string.sub(member, PAYLOAD_AT))
      if owner == '' or owner ~= theirs then
        return false
      end
      held = held or string.byte(member, MODE_AT) ~= MODE_REMAINDER
    end
    return held
  end
  if shares == 0 or string.byte(ticket, MODE_AT) ~= MODE_SHARED then
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
    local _, _, _, theirs = parts(string.sub(member, PAYLOAD_AT))
    if theirs == owner and string.byte(member, MODE_AT) ~= MODE_REMAINDER then
      return true
    end
  end
  return false
end

-- lapses tells whether a hold or a remainder will end by itself, without a message to those that
-- wait.
local function lapses()
  for _, member in ipairs(exclusive) do
    if string.byte(member, MODE_AT) == MODE_REMAINDER or fixed(string.sub(member, PAYLOAD_AT)) then
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
      if string.byte(other, MODE_AT) ~= MODE_REMAINDER then
        member = other
        break
      end
    end
  end
  local ticket = string.sub(member, 1, TICKET)
  local token = token_of(ticket)
  local ends = tonumber(redis.call('ZSCORE', state, member))
  if ends >= SHARED and member ~= members[1] then
    ends = redis.call('ZSCORE', state, members[1])
  end
  return ticket .. token .. string.sub(member, PAYLOAD_AT), count, ends % SHARED - ms
end
