-- evict: take a ticket out of the queue, and let in who may hold then.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 queue, 4 watchers
-- ARGV  1 a ticket of the kind, 2 id of the ticket to take out, 3 label of the caller, 4 life of a place in ms: a marker lasts as long
-- reply 1 it is out, 0 it has no place there, and nothing was touched; "F" and "f" as for ask
-- Replays: a marker of the ticket is found. Commands that free memory come before those that need it.

--@include codes
--@include time
local life = tonumber(ARGV[4])
--@include holds
--@include publish
--@include messages
--@include queue
--@include evicted

--@untouched
local odd = look(ARGV[1])
if odd then
  return odd
end

-- find is the member of the ticket among those with these scores.
local function find(from, to)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue, from, to)) do
    if string.byte(member, COLON_AT) == COLON and string.sub(member, ID_AT, TICKET) == ARGV[2] then
      return member
    end
  end
end

local member = find(PLACES, '+inf') or find(whole(1 - OUT), '-1') -- the latter: it is closed
if not member then
  for _, mode in ipairs({'x', 'w', 'o', 's'}) do
    if evicted(string.sub(ARGV[1], 1, STAMP) .. mode .. ':' .. ARGV[2]) then
      return 1
    end
  end
  return 0
end
--@touched
local ticket, payload = string.sub(member, 1, TICKET), string.sub(member, PAYLOAD_AT)
local lasts = math.max(life, tonumber(keeps(payload) or 0))
local _, _, channel = parts(payload)
leave(ticket, payload)
sweep()
local ends = whole(-OUT - ms - lasts)
redis.call('ZADD', queue, ends, 'e' .. ticket, ends, 'e' .. ticket .. ':' .. ARGV[3])
if redis.call('PTTL', queue) < lasts then
  redis.call('PEXPIRE', queue, whole(lasts + 5000))
end
hand_on(nil, true)
if channel ~= '' then
  publish(channel, ASK .. ARGV[2] .. '0')
end
return 1
