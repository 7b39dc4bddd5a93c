-- break: end a hold of another caller. It becomes a remainder; by force nothing is left of it, or of a remainder.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 queue, 4 watchers
-- ARGV  1 a ticket of the kind, 2 a token of the hold's block (16 digits), 3 label of the caller, 4 "f" by force, else "b",
--       5 life of a place in ms
-- reply 1 it is broken, 0 there is no such hold, and nothing was touched; "F" and "f" as for ask
-- Replays: what a break left is found again. Commands that free memory come before those that need it.

--@include codes
--@include time
local life = tonumber(ARGV[5])
--@include holds
--@include publish
--@include messages
--@include queue

--@untouched
local odd = look(ARGV[1])
if odd then
  return odd
end
local found, rest
for _, member in ipairs(shares > 0 and redis.call('ZRANGEBYSCORE', state, '1', '+inf') or exclusive) do
  local ticket, payload = string.sub(member, 1, TICKET), string.sub(member, PAYLOAD_AT)
  local first = mine(ticket, payload)
  local _, block = parts(payload)
  if first <= ARGV[2] and ARGV[2] <= string.format('%016.0f', tonumber(first) + tonumber(block) - 1) then
    found, rest = member, string.byte(ticket, MODE_AT) == MODE_REMAINDER
    break
  end
end
local again = rest and broken_by(found)
if not found or rest and not again and ARGV[4] ~= 'f' then
  return 0
end
if alone and ARGV[4] ~= 'f' then -- without ZADD there would be nothing left of the hold
  local may = redis.pcall('ZADD', queue, 'XX', '0', 'x')
  if type(may) == 'table' and not string.find(may.err, 'OOM', 1, true) then -- there is memory once the hold is out
    redis.call('ZADD', queue, 'XX', '0', 'x') -- the server's own refusal
  end
end
--@touched
local _, _, channel = parts(string.sub(found, PAYLOAD_AT))
local elects = string.byte(found, KIND_AT) == KIND_ELECTION
if ARGV[4] == 'f' then
  if alone then
    redis.call('DEL', state)
    exclusive, alone = {}, nil
  else
    drop(found)
    look(ARGV[1])
  end
  hand_on(nil, rest)
  elects = elects and not exclusive[1] -- otherwise its watchers know the next leader
elseif not again then
  remain(found, 'b', ARGV[3])
  tell_first()
end
if elects then
  changed()
end
if channel ~= '' then
  publish(channel, BROKEN .. string.sub(found, ID_AT, TICKET))
end
return 1
