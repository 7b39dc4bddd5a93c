-- resize: set how many permits a semaphore has while it is in use, and let in who fits then.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 queue, 4 watchers
-- ARGV  1 a ticket of the kind, 2 permits, 3 not after (server us), 4 life of a place in ms
-- reply 1 done, 0 nobody uses it: there is nothing to set, "L" and "F" as for ask
-- Replays change nothing.

--@include codes
--@include time
--@untouched
if now > ARGV[3] then
  return 'L' .. now
end

--@touched
local life = tonumber(ARGV[4])
--@include holds
--@include publish
--@include messages
--@include queue

local odd = look(ARGV[1])
if odd then
  return odd
end
local waiting = count() > 0 or redis.call('ZSCORE', queue, 'c') -- the latter where all places are closed
if shares == 0 and not waiting then
  return 0
end
capacity = tonumber(ARGV[2])
if shares > 0 then
  redis.call('ZADD', state, -capacity, 'c')
end
if waiting then
  redis.call('ZADD', queue, -capacity, 'c')
end
hand_on(nil)
return 1
