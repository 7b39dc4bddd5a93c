-- resume: give the hold of an owner, with a token it was granted, a new ticket: another process goes on with it.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 line, 4 watchers
-- ARGV  1 ticket, 2 payload, 3 TTL in ms, 4 not after (server us), 5 owner, 6 token (16 digits)
-- reply as for ask; "B" when there is no such hold
-- The old ticket holds no more; the new token is larger. Replays: as for ask.

--@include time
--@untouched
if now > ARGV[4] then
  return 'L' .. now
end

--@touched
--@include state

local ticket, payload = ARGV[1], ARGV[2]
local odd = look(ticket)
if odd then
  return odd
end
local held = mine(ticket, payload)
if held then
  last(ticket, payload, tonumber(ARGV[3]))
  return 'H' .. held .. '1|' .. now
end
for at, member in ipairs(exclusive) do
  local holder, theirs = string.sub(member, 1, 26), string.sub(member, 27)
  local token = mine(holder, theirs)
  local _, block, _, owner = parts(theirs)
  -- It is meant when it is of this owner, or of none and has this very id; and when the token is one of its block.
  if (owner == ARGV[5] or owner == '' and string.sub(holder, 5) == ARGV[5]) and string.byte(holder, 3) ~= 45
    and token <= ARGV[6] and ARGV[6] <= string.format('%016.0f', tonumber(token) + tonumber(block) - 1) then
    if alone then
      redis.call('DEL', state)
    else
      drop(member)
    end
    table.remove(exclusive, at)
    alone = nil
    token = take('1')
    admit(ticket, payload, token, ARGV[3])
    return 'H' .. token .. '1|' .. now
  end
end
return 'B' .. describe(count())
