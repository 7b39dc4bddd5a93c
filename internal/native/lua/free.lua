-- free: give a hold back, or a place in line, and let the next in.
--
-- KEYS  1 state of the name, 2 clock of its slot
-- ARGV  1 ticket, 2 payload, 3 server us before which nobody may enter (the end of a min hold), or "0", 4 "z" when the
--       state is more likely a set
-- reply 1 there was a hold or a place, 0 there was none, "F" as for ask
-- Replays find nothing of the ticket and change nothing. What frees memory comes before what needs it.

local ticket, payload, keep = ARGV[1], ARGV[2], ARGV[3]
local value
if ARGV[4] ~= 'z' or keep ~= '0' then
  value = redis.pcall('GET', KEYS[1])
  if keep == '0' and type(value) == 'string' and string.sub(value, 1, 26) == ticket then
    return redis.call('DEL', KEYS[1])
  end
  if not value then
    return 0
  end
end
local dropped = type(value) ~= 'string' and keep == '0' and
  redis.pcall('ZREM', KEYS[1], 'h' .. ticket .. payload, 't' .. ticket, 'q' .. ticket .. payload, 'l' .. ticket)
if dropped == 0 then
  return 0
end
local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)

--@include line

if type(dropped) == 'number' then
  local next = redis.call('ZRANGEBYSCORE', key, '0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if next[2] and tonumber(next[2]) < PLACES then -- another hold: of the same owner, or one whose time is over
    if holders()[1] then
      return 1
    end
    next[1] = first(0)
  end
  hand_on(nil, next[1])
  return 1
end

-- What is left: a string that was not expected, or a min hold; or a key of another kind or type.
value = value or redis.call('GET', key)
keep = math.ceil((tonumber(keep) - tonumber(now)) / 1000)

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

local held = redis.call('ZSCORE', key, 'h' .. ticket .. payload)
if redis.call('ZREM', key, 'h' .. ticket .. payload, 't' .. ticket, 'q' .. ticket .. payload, 'l' .. ticket) == 0 then
  return 0
end
if held and tonumber(held) > ms and keep > 0 then
  hold(rest, nobody, ms + keep, now)
  local next = first(0)
  if next then
    local _, _, channel = parts(string.sub(next, 28))
    if channel ~= '' then
      redis.pcall('PUBLISH', channel, 'N' .. string.sub(next, 6, 27) .. keep)
    end
  end
elseif not holders()[1] then
  hand_on(nil, first(0))
end
return 1
