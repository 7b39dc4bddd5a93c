-- downgrade: turn a hold that excludes into one that shares, without a gap, and let in the waiters that share with it.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 queue, 4 watchers
-- ARGV  1 ticket and 2 payload of the hold that will share, 3 TTL in ms, 4 not after (server us), 5 ticket and 6 payload
--       of the hold that excludes, 7 life of a place in ms
-- reply as for ask; "B" when there is no such hold; "R" by    a caller with that label broke it
-- The token stays. Replays: as for ask.

--@include codes
--@include time
--@untouched
if now > ARGV[4] then
  return 'L' .. now
end

local life = tonumber(ARGV[7])
--@include holds
--@include publish
--@include messages
--@include queue

local ticket, payload = ARGV[1], ARGV[2]
local odd = look(ticket)
if odd then
  return odd
end
local token = mine(ticket, payload)
if token then
  prolong(ticket, payload, tonumber(ARGV[3]))
else
  token = mine(ARGV[5], ARGV[6])
  if not token then
    local _, reply = broken(ARGV[5])
    return reply or 'B' .. describe(count())
  end
  if alone then
    redis.call('DEL', state)
    --@touched
    exclusive, alone = {}, nil
  else
    drop(ARGV[5] .. ARGV[6])
    look(ticket)
  end
  admit(ticket, payload, token, ARGV[3])
  hand_on(nil)
end
return 'H' .. token .. '1|' .. now
