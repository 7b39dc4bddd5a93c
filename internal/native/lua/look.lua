-- look: say who holds, and remember a watcher until the next change.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 queue, 4 watchers
-- ARGV  1 a ticket of the kind, 2 id of the watcher or "", 3 its channel, 4 life of a watcher in ms
-- reply now|holders|waiters|permits|taken|a hold, with its token; "F" as for ask

--@include codes
--@include time
--@untouched

--@include holds

local odd = look(ARGV[1])
if odd then
  return odd
end
if ARGV[2] ~= '' then
  redis.call('HSET', watchers, ARGV[2], ARGV[3])
  --@touched
  redis.call('PEXPIRE', watchers, ARGV[4])
end
local member, holders = holder()
local held = shares > 0 and capacity and redis.call('ZSCORE', state, 'w') or 0
return now .. '|' .. holders .. '|' .. redis.call('ZCOUNT', queue, PLACES, '+inf') .. '|' .. whole(shares > 0 and capacity or 0) .. '|' ..
  whole(-held) .. '|' .. member
