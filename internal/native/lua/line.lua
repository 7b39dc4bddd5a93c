-- What all scripts share once the short path does not do: the state as a sorted set. See the package document for
-- the layout. They expect now (server us, 16 digits) and leave its milliseconds in ms.

local key, clock = KEYS[1], KEYS[2]
local ms = math.floor(tonumber(now) / 1000)
local LIFE, PLACES = 2e13, '1000000000000000'
local EXCLUSIVE_FROM, EXCLUSIVE_TO = '0', '9999999999999'

-- foreign tells, in the words of a reply, that a string is not of the ticket's kind and format.
local function foreign(value, ticket)
  if string.sub(value, 1, 2) == string.sub(ticket, 1, 2) and string.byte(value, 4) == 58 then
    return nil
  end
  return 'F' .. string.sub(value, 1, 4)
end

-- outlive keeps the key until a moment (server ms) and some seconds more; it never shortens its life.
local function outlive(moment)
  local need = moment - ms + 5000
  if redis.call('PTTL', key) < need then
    redis.call('PEXPIRE', key, string.format('%.0f', need))
  end
end

-- unfold turns the string of a single hold into the set, with the same expiry.
local function unfold(value)
  local left = redis.call('PTTL', key)
  if left < 0 then
    left = 86400000
  end
  local ticket = string.sub(value, 1, 26)
  redis.call('DEL', key)
  redis.call('ZADD', key, ms + left, 'h' .. ticket .. string.sub(value, 43), '-' .. string.sub(value, 27, 42), 't' .. ticket)
  outlive(ms + left)
end

-- holders are the members that hold, the first to end first; those whose time is over are removed. The second result is
-- when the first ends.
local function holders()
  local found, live, ends = redis.call('ZRANGEBYSCORE', key, EXCLUSIVE_FROM, EXCLUSIVE_TO, 'WITHSCORES'), {}, ms
  for i = 1, #found, 2 do
    local member, score = found[i], tonumber(found[i + 1])
    if score <= ms then
      redis.call('ZREM', key, member, 't' .. string.sub(member, 2, 27))
    else
      live[#live + 1] = member
      if #live == 1 then
        ends = score
      end
    end
  end
  return live, ends
end

-- drop removes all that a ticket has; it tells whether there was anything.
local function drop(ticket, payload)
  return redis.call('ZREM', key, 'h' .. ticket .. payload, 't' .. ticket, 'q' .. ticket .. payload, 'l' .. ticket) > 0
end

-- parts takes a payload apart: claim, block, channel, owner.
local function parts(payload)
  local claim, block, channel, owner, from = string.match(payload, '^(%d+):(%d+):(%d+):(%d+):()')
  channel, owner = tonumber(channel), tonumber(owner)
  return claim, block, string.sub(payload, from, from + channel - 1),
    string.sub(payload, from + channel, from + channel + owner - 1)
end

-- shares tells whether two payloads are of one owner, and not of none.
local function shares(one, other)
  local _, _, _, owner = parts(one)
  if owner == '' then
    return false
  end
  local _, _, _, second = parts(other)
  return owner == second
end

-- next_token is larger than every one before, and not behind the time. A clock that holds anything but a number
-- of ours, below 2^53 with room for every block, raises an error before anything is written.
local function next_token()
  local last = redis.pcall('GET', clock)
  if not last or type(last) == 'string' and last < now and #last == 16 then
    return now
  end
  if type(last) ~= 'string' or not string.match(last, '^%d+$') or #last ~= 16 or last > '9007199254000000' then
    error('holdfast: the key ' .. clock .. ' holds no token of ours')
  end
  return string.format('%016.0f', tonumber(last) + 1)
end

-- spend reserves a token and the block behind it.
local function spend(token, block)
  redis.call('SET', clock, string.format('%016.0f', tonumber(token) + tonumber(block) - 1))
end

local function hold(ticket, payload, expiry, token, block)
  spend(token, block)
  redis.call('ZADD', key, expiry, 'h' .. ticket .. payload, '-' .. token, 't' .. ticket)
  outlive(expiry)
end

-- hand_on lets the first in line in, and tells it alone. A waiter without life is taken out; one whose process does
-- not hear us is passed over for one that does, and keeps its place. "self", or a member without its "q", is the
-- caller's own: it needs no message, and nothing is changed for it. Returns nil when nobody waits.
local function hand_on(self)
  local at, unheard, token = 0, nil, next_token()
  while at < 8 do
    local member = redis.call('ZRANGEBYSCORE', key, PLACES, '+inf', 'LIMIT', at, 1)[1]
    if not member then
      break
    end
    local whole = string.sub(member, 2)
    local ticket, payload = string.sub(whole, 1, 26), string.sub(whole, 27)
    if whole == self then
      return 'self'
    end
    local life = redis.call('ZSCORE', key, 'l' .. ticket)
    if not life or tonumber(life) - LIFE <= ms then
      redis.call('ZREM', key, member, 'l' .. ticket)
    else
      local claim, block, channel = parts(payload)
      local heard = channel == ''
      if not heard then
        local told = redis.pcall('PUBLISH', channel, 'G' .. string.sub(ticket, 5) .. token .. block .. '|' .. claim .. '|' .. now)
        heard = type(told) == 'number' and told > 0
      end
      if heard then
        redis.call('ZREM', key, member, 'l' .. ticket)
        hold(ticket, payload, ms + tonumber(claim), token, block)
        return ticket
      end
      unheard = unheard or member
      at = at + 1
    end
  end
  if self and not redis.call('ZSCORE', key, 'q' .. self) then
    return 'self'
  end
  if unheard then
    local ticket, payload = string.sub(unheard, 2, 27), string.sub(unheard, 28)
    local claim, block = parts(payload)
    redis.call('ZREM', key, unheard, 'l' .. ticket)
    hold(ticket, payload, ms + tonumber(claim), token, block)
    return ticket
  end
end

-- describe says who holds and how many wait before a caller: now|remaining|holders|before|a hold.
local function describe(live, ends, before)
  return now .. '|' .. string.format('%.0f', ends - ms) .. '|' .. #live .. '|' .. before .. '|' .. string.sub(live[1] or '', 2)
end
