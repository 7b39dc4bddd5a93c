-- What all scripts share once the short path does not do: the state as a sorted set. See the package document for
-- the layout. They expect now (server us, 16 digits).
--
-- Scores are asked for only where they are needed: Redis 7.0 writes each with printf("%.17g"), which costs more than
-- any command here.

local key, clock = KEYS[1], KEYS[2]
local ms = math.floor(tonumber(now) / 1000)
local HOLDS_END, PLACES = '9999999999999', '1000000000000000'

-- foreign tells, in the words of a reply, that a value is not of the ticket's kind and format.
local function foreign(value, ticket)
  if string.sub(value, 1, 2) == string.sub(ticket, 1, 2) and string.byte(value, 4) == 58 and #value >= 34 then
    return nil
  end
  return 'F' .. string.sub(value, 1, 4)
end

-- outlive keeps the key until a moment (server ms) and some seconds more; it never shortens its life.
local function outlive(moment)
  local need = moment - ms + 5000
  if redis.call('PTTL', key) < need then
    redis.call('PEXPIRE', key, string.format('%d', need))
  end
end

-- holders are the members that hold, the first to end first; those whose time is over are removed.
local function holders()
  local over = redis.call('ZCOUNT', key, '0', string.format('%d', ms))
  if over > 0 then
    redis.call('ZREMRANGEBYSCORE', key, '0', string.format('%d', ms))
  end
  return redis.call('ZRANGEBYSCORE', key, '0', HOLDS_END)
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
  local up_to = now
  if block ~= '1' then
    up_to = string.format('%016.0f', tonumber(now) + tonumber(block) - 1)
  end
  local last = redis.pcall('GETSET', clock, up_to)
  if not last or type(last) == 'string' and last < now and #last == 16 then
    return now
  end
  if type(last) == 'string' then
    redis.call('SET', clock, last)
  end
  if type(last) ~= 'string' or not string.match(last, '^%d+$') or #last ~= 16 or last > '9007199254000000' then
    error('holdfast: the key ' .. clock .. ' holds no token of ours')
  end
  redis.call('SET', clock, string.format('%016.0f', tonumber(last) + tonumber(block)))
  return string.format('%016.0f', tonumber(last) + 1)
end

-- hold adds a hold that ends in so many ms.
local function hold(ticket, token, payload, last)
  redis.call('ZADD', key, string.format('%d', ms + last), 'h' .. ticket .. token .. payload)
end

-- first is the member at a place in line, from 0.
local function first(at)
  return redis.call('ZRANGEBYSCORE', key, PLACES, '+inf', 'LIMIT', at, '1')[1]
end

-- lives tells whether a waiter has shown life: when it joined, which is its place, or when it asked since.
local function lives(member, ticket)
  if redis.call('ZSCORE', key, member) / 1000 + 18000 > ms then
    return true
  end
  local life = redis.call('ZSCORE', key, 'l' .. ticket)
  return life and -life > ms
end

-- let_in makes a waiter hold, for its claim. Those behind it who are of its owner are told to ask: they enter beside it.
local function let_in(member, token)
  local ticket, payload = string.sub(member, 2, 27), string.sub(member, 28)
  local claim, block, _, owner = parts(payload)
  hold(ticket, token or take(block), payload, claim) -- first: a set that becomes empty loses its expiry
  redis.call('ZREM', key, member, 'l' .. ticket)
  if owner == '' then
    return
  end
  for _, next in ipairs(redis.call('ZRANGEBYSCORE', key, PLACES, '+inf', 'LIMIT', '0', '32')) do
    local _, _, channel, other = parts(string.sub(next, 28))
    if other ~= owner then
      return
    end
    if channel ~= '' then
      redis.pcall('PUBLISH', channel, 'N' .. string.sub(next, 6, 27) .. '0')
    end
  end
end

-- hand_on lets the first in line in, and tells it alone. A waiter that shows no life is taken out, although its host may
-- seem to listen until the server misses it; one whose process does not hear us is passed over for one that does, and
-- keeps its place. "self", a member without its "q", is the caller's own:
-- it needs no message, and nothing is changed for it. Member is the first in line. Returns nil when nobody waits.
local function hand_on(self, member)
  local at, unheard = 0, nil
  while member and at < 8 do
    if string.sub(member, 2) == self then
      return 'self'
    end
    local ticket, payload = string.sub(member, 2, 27), string.sub(member, 28)
    local claim, block, channel = parts(payload)
    if not lives(member, ticket) then
      redis.call('ZREM', key, member, 'l' .. ticket)
    elseif channel == '' then
      let_in(member)
      return ticket
    else
      local token = take(block)
      local told = redis.pcall('PUBLISH', channel, 'G' .. string.sub(ticket, 5) .. token .. block .. '|' .. claim .. '|' .. now)
      if type(told) == 'number' and told > 0 then
        let_in(member, token)
        return ticket
      end
      unheard = unheard or member
      at = at + 1
    end
    member = first(at)
  end
  if self and not redis.call('ZSCORE', key, 'q' .. self) then
    return 'self'
  end
  if unheard then
    let_in(unheard)
    return string.sub(unheard, 2, 27)
  end
end

-- whose is a hold as others see it: its member without the token.
local function whose(member)
  return string.sub(member, 2, 27) .. string.sub(member, 44)
end

-- describe says who holds and how many wait before a caller: now|remaining|holders|before|a hold.
local function describe(live, before)
  local left = live[1] and redis.call('ZSCORE', key, live[1]) - ms or 0
  return now .. '|' .. string.format('%d', left) .. '|' .. #live .. '|' .. before .. '|' .. whose(live[1] or '')
end
