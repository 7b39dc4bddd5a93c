-- What all scripts share once the short path does not do: the state as a sorted set. See the package document for
-- the layout. They expect now (server us, 16 digits).

local key, clock = KEYS[1], KEYS[2]
local ms = math.floor(tonumber(now) / 1000)
local HOLDS_END, PLACES = '9999999999999', 1e15

-- foreign tells, in the words of a reply, that a value is not of the ticket's kind and format.
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
  local found, live, ends = redis.call('ZRANGEBYSCORE', key, '0', HOLDS_END, 'WITHSCORES'), {}, ms
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

-- parts takes a payload apart: claim, block, channel, owner.
local function parts(payload)
  local claim, block, channel, owner, from = string.match(payload, '^(%d+):(%d+):(%d+):(%d+):()')
  channel, owner = tonumber(channel), tonumber(owner)
  return claim, block, string.sub(payload, from, from + channel - 1),
    string.sub(payload, from + channel, from + channel + owner - 1)
end

-- take draws a token and reserves the block behind it: larger than every one before, and not behind the time. A clock
-- that holds anything but a number of ours, below 2^53 with room for every block, raises an error and stays.
local function take(block)
  local token, up_to = now, now
  if block ~= '1' then
    up_to = string.format('%016.0f', tonumber(now) + tonumber(block) - 1)
  end
  local last = redis.pcall('GETSET', clock, up_to)
  if not last or type(last) == 'string' and last < now and #last == 16 then
    return token
  end
  if type(last) == 'string' then
    redis.call('SET', clock, last)
  end
  if type(last) ~= 'string' or not string.match(last, '^%d+$') or #last ~= 16 or last > '9007199254000000' then
    error('holdfast: the key ' .. clock .. ' holds no token of ours')
  end
  token = string.format('%016.0f', tonumber(last) + 1)
  redis.call('SET', clock, string.format('%016.0f', tonumber(last) + tonumber(block)))
  return token
end

local function hold(ticket, payload, expiry, token)
  redis.call('ZADD', key, expiry, 'h' .. ticket .. payload, '-' .. token, 't' .. ticket)
end

-- first is the member at a place in line, from 0.
local function first(at)
  return redis.call('ZRANGEBYSCORE', key, PLACES, '+inf', 'LIMIT', at, 1)[1]
end

-- hand_on lets the first in line in, and tells it alone. A waiter whose process does not hear us is passed over
-- for one that does, and keeps its place while it shows life. "self", a member without its "q", is the caller's own:
-- it needs no message, and nothing is changed for it. Member is the first in line. Returns nil when nobody waits.
local function hand_on(self, member)
  local at, unheard = 0, nil
  while member and at < 8 do
    local whole = string.sub(member, 2)
    if whole == self then
      return 'self'
    end
    local ticket, payload = string.sub(whole, 1, 26), string.sub(whole, 27)
    local claim, block, channel = parts(payload)
    local token = take(block)
    local heard = channel ~= ''
    if heard then
      local told = redis.pcall('PUBLISH', channel, 'G' .. string.sub(ticket, 5) .. token .. block .. '|' .. claim .. '|' .. now)
      heard = type(told) == 'number' and told > 0
    end
    if not heard then
      local life = redis.call('ZSCORE', key, 'l' .. ticket)
      if not life or -life <= ms then
        redis.call('ZREM', key, member, 'l' .. ticket)
        at = at - 1
      elseif channel == '' then
        heard = true
      else
        unheard = unheard or member
      end
    end
    if heard then
      redis.call('ZREM', key, member, 'l' .. ticket)
      hold(ticket, payload, ms + tonumber(claim), token)
      return ticket
    end
    at = at + 1
    member = first(at)
  end
  if self and not redis.call('ZSCORE', key, 'q' .. self) then
    return 'self'
  end
  if unheard then
    local ticket, payload = string.sub(unheard, 2, 27), string.sub(unheard, 28)
    local claim, block = parts(payload)
    redis.call('ZREM', key, unheard, 'l' .. ticket)
    hold(ticket, payload, ms + tonumber(claim), take(block))
    return ticket
  end
end

-- describe says who holds and how many wait before a caller: now|remaining|holders|before|a hold.
local function describe(live, ends, before)
  return now .. '|' .. string.format('%.0f', ends - ms) .. '|' .. #live .. '|' .. before .. '|' .. string.sub(live[1] or '', 2)
end
