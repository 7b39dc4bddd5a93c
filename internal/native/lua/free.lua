-- free: give a hold back, or a place in line, and let the next in.
--
-- KEYS  1 state of the name, 2 clock of its slot
-- ARGV  1 ticket, 2 payload, 3 server us before which nobody may enter (the end of a min hold), or "0"
-- reply 1 there was a hold or a place, 0 there was none, "F" as for ask
-- Replays find nothing of the ticket and change nothing. What frees memory comes before what needs it.

local value = redis.pcall('GET', KEYS[1])
if ARGV[3] == '0' and type(value) == 'string' and string.sub(value, 1, 26) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
if not value then
  return 0
end
local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)

--@include line

local ticket, payload = ARGV[1], ARGV[2]
local keep = math.ceil((tonumber(ARGV[3]) - tonumber(now)) / 1000)

-- What stays of a hold whose min hold is not over: nobody's, so that nobody can renew or enter it.
local rest = string.sub(ticket, 1, 4) .. string.rep('-', 22)
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

local held = keep > 0 and redis.call('ZSCORE', key, 'h' .. ticket .. payload)
if not drop(ticket, payload) then
  return 0
end
if held and tonumber(held) > ms then
  redis.call('ZADD', key, ms + keep, 'h' .. rest .. nobody, '-' .. now, 't' .. rest)
  local first = redis.call('ZRANGEBYSCORE', key, PLACES, '+inf', 'LIMIT', 0, 1)[1]
  if first then
    local _, _, channel = parts(string.sub(first, 28))
    if channel ~= '' then
      redis.pcall('PUBLISH', channel, 'N' .. string.sub(first, 6, 27) .. keep)
    end
  end
  return 1
end
if not holders()[1] then
  hand_on(nil)
end
return 1
