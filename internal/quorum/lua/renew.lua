-- renew: prolong holds of many names at this node, or look whether they are there.
--
-- KEYS  1 facts of the node, then the states of the names
-- ARGV  for each name five: id, mode, TTL in ms (0: only look), server us at which the hold must end, or "", first token
-- reply "R" facts, and a character a name: "1" held, "T" held, with other tokens, "0" not (any
--       more), "R" broken, "F" of another type, kind or format; then for each "R" the length of what
--       follows, ":", and the label of the caller that broke it
-- Never makes a hold, and never revives one whose time is over. One that was downgraded, and excludes here, shares from now on.

--@include state
--@include facts
local told = {}
local function renew(key, at)
  local value = redis.pcall('HGET', key, ARGV[at])
  if type(value) == 'table' then
    return 'F'
  end
  local late = not value and redis.call('HGET', key, '-' .. ARGV[at])
  local is = value or late
  if is and string.sub(is, 1, 2) ~= string.sub(ARGV[at + 1], 1, 2) then
    return 'F'
  end
  if not is or ends_at(is) <= ms then
    return '0'
  end
  if late then
    local by = broken_by(late)
    table.insert(told, #by .. ':' .. by)
    return 'R'
  end
  local ttl, held = tonumber(ARGV[at + 2]), string.sub(value, 1, 3)
  if ttl > 0 then
    if string.sub(ARGV[at + 1], 3) == 's' then
      held = ARGV[at + 1]
    end
    local ends = ms + ttl
    if ARGV[at + 3] ~= '' then
      ends = math.max(ms + 1, math.min(ends, math.floor(tonumber(ARGV[at + 3]) / 1000)))
    end
    redis.call('HSET', key, ARGV[at], held .. string.format('%013.0f', ends) .. string.sub(value, 17, 48) .. AGREED .. string.sub(value, 65))
    if redis.call('HLEN', key) == 1 then
      redis.call('PEXPIREAT', key, string.format('%.0f', ends))
    else
      outlive(key, ends)
    end
  end
  return string.sub(value, 17, 32) == ARGV[at + 4] and '1' or 'T'
end

local reply = {}
for i = 2, #KEYS do
  reply[i - 1] = renew(KEYS[i], i * 5 - 9)
end
local head, last = facts(KEYS[1], 'none')
return 'R' .. head .. last .. table.concat(reply) .. table.concat(told)
