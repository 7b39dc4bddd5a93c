-- renew: prolong holds of many names, or look whether they are there.
--
-- KEYS  the states of the names
-- ARGV  for each name five: ticket with token, payload, TTL in ms (0: only look), floor and ceiling (server us, or "0")
-- reply a character a name: "1" held, "0" not (any more) this ticket's, "F" of another kind or format, "R" broken; then for
--       each "R" the length of what follows, ":", and the label of the caller that broke it
-- Never makes a hold, and never revives one whose time is over.

--@include codes
--@include common
--@include payload

local now

local function clock()
  if not now then
    local time = redis.call('TIME')
    now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  end
  return now
end

-- term is the time to give, in ms: the TTL, no less than up to the floor and no more than up to the
-- ceiling.
local function term(at)
  local ttl = tonumber(ARGV[at + 2])
  if ttl > 0 and ARGV[at + 3] ~= '0' then
    ttl = math.max(ttl, math.ceil(tonumber(ARGV[at + 3]) / 1000) - clock())
  end
  if ttl > 0 and ARGV[at + 4] ~= '0' then
    ttl = math.max(1, math.min(ttl, math.floor(tonumber(ARGV[at + 4]) / 1000) - clock()))
  end
  return ttl
end

-- broken tells whether the hold of a ticket was broken, and takes down by whom.
local told = {}
local function broken(key, ticket)
  local rest = leftover(ticket)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '1', '+inf')) do
    if string.sub(member, 1, TICKET) == rest and redis.call('ZSCORE', key, member) % SHARED > clock() then
      local by = broken_by(member)
      if by then
        table.insert(told, #by .. ':' .. by)
        return true
      end
    end
  end
end

local function renew(key, at)
  local ticket = ARGV[at]
  local value = redis.pcall('GET', key)
  if type(value) == 'string' then
    if string.sub(value, 1, TOKEN) ~= ticket then
      return string.sub(value, 1, STAMP) == string.sub(ticket, 1, STAMP) and '0' or 'F'
    end
    local ttl = term(at)
    if ttl > 0 then
      redis.call('PEXPIRE', key, whole(ttl))
      --@noevict key
    end
    return '1'
  end
  if not value then
    return '0'
  end
  if not wrong(value) then
    redis.call('GET', key)
  end
  local member = string.sub(ticket, 1, TICKET) .. ARGV[at + 1]
  local ends = redis.pcall('ZSCORE', key, member)
  if type(ends) == 'table' then
    return wrong(ends) and 'F' or redis.call('ZSCORE', key, member)
  end
  local base = string.byte(ticket, MODE_AT) == MODE_SHARED and SHARED or 0
  if not ends then
    return broken(key, ticket) and 'R' or '0'
  end
  if tonumber(ends) <= clock() + base then
    return '0'
  end
  local ttl = term(at)
  if ttl > 0 then
    -- Without memory to spare the server refuses ZADD, but not behind a command that needs none.
    redis.call('PEXPIRE', key, whole(math.max(ttl, redis.call('PTTL', key) + 1)))
    redis.call('ZADD', key, 'XX', whole(clock() + ttl + base), member)
    --@noevict key
    if base > 0 and fixed(ARGV[at + 1]) then -- extended: all such holds are over later
      redis.call('ZADD', key, whole(math.min(redis.call('ZSCORE', key, 'f') or 0, -(clock() + ttl))), 'f')
    end
  end
  return '1'
end

local reply = {}
for i, key in ipairs(KEYS) do
  reply[i] = renew(key, i * 5 - 4)
end
return table.concat(reply) .. table.concat(told)
