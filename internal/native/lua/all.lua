-- all: hold several names, or none of them.
--
-- KEYS  of each name three: state, clock of its slot, queue
-- ARGV  1 TTL in ms, 2 not after (server us), then of each name two: ticket, payload
-- reply "H" now and the tokens, 16 digits each    the tickets hold
--       else nothing was done: "B" or "F", the number of the first name that is taken, from 1, "|", and as for ask
--       "A" all could be free: somebody waits for one of them, and may have to be let in first; or what held one is over
--       "L" as for ask
-- Replays: tickets that hold are told so, and get their full TTL.

--@include codes
--@include time
--@include payload
--@include publish
--@include recall
--@untouched
if now > ARGV[2] then
  return 'L' .. now
end
local names, had, waiters = #KEYS / 3, 0, false
for at = 1, names do
  local ticket, state, clock, queue = ARGV[at * 2 + 1], KEYS[at * 3 - 2], KEYS[at * 3 - 1], KEYS[at * 3]
  local value = redis.pcall('GET', state)
  if type(value) == 'string' and string.sub(value, 1, TICKET) == ticket then
    had = had + 1
  elseif type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
    redis.call('GET', state) -- the server's own refusal
  elseif value then
    local sample = type(value) == 'string' and value or redis.call('ZRANGE', state, '-1', '-1')[1]
    if string.sub(sample, 1, STAMP) ~= string.sub(ticket, 1, STAMP) or string.byte(sample, COLON_AT) ~= COLON or #sample < SHORTEST then
      return 'F' .. at .. '|' .. string.sub(sample, 1, FRONT)
    end
    if sample ~= value and redis.call('ZSCORE', state, sample) % 10000000000000 <= now / 1000 then
      return 'A'
    end
    local reply = 'B' .. at .. '|' .. now .. '|' .. redis.call('PTTL', state) .. '|1|' ..
      redis.call('ZCOUNT', queue, '1', '+inf') .. '|'
    local held = string.sub(sample, 1, TICKET)
    recall(held, string.sub(sample, sample == value and REST_AT or PAYLOAD_AT))
    if sample == value then
      return reply .. value
    end
    return reply .. held .. string.format('%016.0f', -(redis.call('ZSCORE', state, 't' .. held) or 0)) .. string.sub(sample, PAYLOAD_AT)
  end
  waiters = waiters or redis.call('EXISTS', queue) == 1
  local last = redis.call('GET', clock)
  if last and (not string.match(last, '^%d+$') or #last > 16 or tonumber(last) > 9007199254000000) then
    return redis.error_reply('ERR holdfast: the key ' .. clock .. ' holds no token of ours')
  end
end
if waiters and had == 0 or had > 0 and had < names then -- in the second case a part is over
  return 'A'
end
--@touched
local reply = {'H' .. now}
for at = 1, names do
  local state, clock, ticket = KEYS[at * 3 - 2], KEYS[at * 3 - 1], ARGV[at * 2 + 1]
  local token = now
  if had > 0 then
    token = string.sub(redis.call('GET', state), TOKEN_AT, TOKEN)
    redis.call('PEXPIRE', state, ARGV[1])
  else
    local last = redis.call('GET', clock)
    if last and tonumber(last) >= tonumber(now) then
      token = string.format('%016.0f', tonumber(last) + 1)
    end
    redis.call('SET', clock, token)
    redis.call('SET', state, ticket .. token .. ARGV[at * 2 + 2], 'PX', ARGV[1])
    --@noevict clock
    --@noevict state
  end
  reply[at + 1] = token
end
return table.concat(reply)
