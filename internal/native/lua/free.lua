-- free: give a hold back, or a place in line, and let the next in.
--
-- KEYS  1 state of the name, 2 clock of its slot
-- ARGV  1 ticket, 2 payload, 3 token of the hold, or "" when it is not known, 4 server us before which nobody may enter
--       (the end of a min hold), or "0", 5 "z" when the state is more likely a set
-- reply 1 there was a hold or a place, 0 there was none, "F" as for ask
-- Replays find nothing of the ticket and change nothing. What frees memory comes before what needs it.

local ticket, payload = ARGV[1], ARGV[2]
local value
if ARGV[5] ~= 'z' then
  value = redis.pcall('GET', KEYS[1])
  if ARGV[4] == '0' and type(value) == 'string' and string.sub(value, 1, 26) == ticket then
    return redis.call('DEL', KEYS[1])
  end
  if not value then
    return 0
  end
end
local dropped = 0
if type(value) ~= 'string' and ARGV[4] == '0' then
  dropped = redis.pcall('ZREM', KEYS[1], 'h' .. ticket .. ARGV[3] .. payload, 'q' .. ticket .. payload, 'l' .. ticket)
end
local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)

--@include line

-- pass_on lets the next in where nobody holds any more.
local function pass_on()
  local next = redis.call('ZRANGEBYSCORE', key, '0', '+inf', 'LIMIT', '0', '1')[1]
  if next and string.byte(next) == 104 then -- "h": another hold, of the same owner, or one whose time is over
    if holders()[1] then
      return 1
    end
    next = first('0')
  end
  hand_on(nil, next)
  return 1
end

if dropped ~= 0 and type(dropped) == 'number' then
  return pass_on()
end

-- Rarer: a string that was not expected, a min hold, a hold whose token the caller never learned, or nothing.
if not value then
  value = redis.pcall('GET', key)
end
if not value then
  return 0
end
local keep = math.ceil((tonumber(ARGV[4]) - tonumber(now)) / 1000)

-- What stays of a hold whose min hold is not over: nobody's, so that nobody can renew or enter it.
local rest = string.sub(ticket, 1, 2) .. 'x:' .. string.rep('-', 22)
local nobody = '0:1:0:0:'

if type(value) == 'string' then
  local odd = foreign(value, ticket)
  if odd then
    return odd
  end
  if string.sub(value, 1, 26) ~= ticket then
    return 0
  end
  if keep > 0 then
    redis.call('PEXPIRE', key, keep)
    redis.call('SET', key, rest .. string.sub(value, 27, 42) .. nobody, 'PX', keep)
  else
    redis.call('DEL', key)
  end
  return 1
end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. string.format('%d', ms), HOLDS_END)) do
  if string.sub(member, 2, 27) == ticket then
    redis.call('ZREM', key, member)
    if keep <= 0 then
      return pass_on()
    end
    hold(rest, string.sub(member, 28, 43), nobody, keep)
    local next = first('0')
    if next then
      local _, _, channel = parts(string.sub(next, 28))
      if channel ~= '' then
        redis.pcall('PUBLISH', channel, 'N' .. string.sub(next, 6, 27) .. keep)
      end
    end
    return 1
  end
end
if redis.call('ZREM', key, 'q' .. ticket .. payload, 'l' .. ticket) > 0 then
  return pass_on()
end
return 0
