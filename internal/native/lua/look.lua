-- look: say who holds, and remember a watcher until the next change.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 line, 4 watchers
-- ARGV  1 a ticket of the kind, 2 id of the watcher or "", 3 its channel, 4 life of a watcher in ms
-- reply now|remaining|holders|waiters|token|permits|taken|a hold, without its token; "F" as for ask

--@include time
--@untouched

--@include state

local odd = look(ARGV[1])
if odd then
  return odd
end
if ARGV[2] ~= '' then
  redis.call('HSET', watchers, ARGV[2], ARGV[3])
  --@touched
  redis.call('PEXPIRE', watchers, ARGV[4])
end
local text, token, permits, taken = describe(count()), '0', 0, 0
if alone then
  token = string.sub(alone, 27, 42)
elseif exclusive[1] or shares > 0 then
  local holder = string.match(text, '^%d+|%-?%d+|%d+|%d+|(.*)$')
  local score = redis.call('ZSCORE', state, 't' .. string.sub(holder, 1, 26)) -- what a min hold keeps has none
  token = score and whole(-score) or '0'
  permits, taken = capacity or 0, -(redis.call('ZSCORE', state, 'w') or 0)
end
return (string.gsub(text, '^(%d+|%-?%d+|%d+|%d+)|', '%1|' .. token .. '|' .. whole(permits) .. '|' .. whole(taken) .. '|', 1))
