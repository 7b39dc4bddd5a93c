-- all: hold several names, or none of them.
--
-- KEYS  of each name three: state, clock of its slot, line
-- ARGV  1 TTL in ms, 2 not after (server us), then of each name two: ticket, payload
-- reply "H" now and the tokens, 16 digits each    the tickets hold
--       "B" not all are free: nothing was done
--       "L" and "F" as for ask
-- Replays: tickets that hold are told so, and get their full TTL.

local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)
if now > ARGV[2] then
  return 'L' .. now
end
local names, had = #KEYS / 3, 0
for at = 1, names do
  local ticket = ARGV[at * 2 + 1]
  local value = redis.pcall('GET', KEYS[at * 3 - 2])
  if value and type(value) == 'string' and string.sub(value, 1, 26) == ticket then
    had = had + 1
  elseif value or redis.call('EXISTS', KEYS[at * 3]) == 1 then
    return 'B'
  end
  local last = redis.call('GET', KEYS[at * 3 - 1])
  if last and (not string.match(last, '^%d+$') or #last ~= 16 or last > '9007199254000000') then
    return redis.error_reply('ERR holdfast: the key ' .. KEYS[at * 3 - 1] .. ' holds no token of ours')
  end
end
if had > 0 and had < names then -- a part is over, or another had it since
  return 'B'
end
local reply = {'H' .. now}
for at = 1, names do
  local state, clock, ticket = KEYS[at * 3 - 2], KEYS[at * 3 - 1], ARGV[at * 2 + 1]
  local token = now
  if had > 0 then
    token = string.sub(redis.call('GET', state), 27, 42)
    redis.call('PEXPIRE', state, ARGV[1])
  else
    local last = redis.call('GET', clock)
    if last and last >= now then
      token = string.format('%016.0f', tonumber(last) + 1)
    end
    redis.call('SET', clock, token)
    redis.call('SET', state, ticket .. token .. ARGV[at * 2 + 2], 'PX', ARGV[1])
  end
  reply[at + 1] = token
end
return table.concat(reply)
