-- resume: give the hold of an owner, with a token it was granted, a new ticket: another process goes on with it.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 queue, 4 watchers
-- ARGV  1 ticket, 2 payload, 3 TTL in ms, 4 not after (server us), 5 owner, 6 token (16 digits)
-- reply as for ask; "B" when there is no such hold
-- The old hold becomes a remainder, and its process is told; the new token is larger. What is left of holds that the old one had
-- taken over does not exclude the ticket either. Other holds of the old owner, and other remainders, are in its way if they exclude
-- it. Replays: as for ask.

--@include letters
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
local token = mine(ticket, payload)
if token then
  last(ticket, payload, tonumber(ARGV[3]))
  return 'H' .. token .. '1|' .. now
end
if remainder(ticket) then -- it comes late: the hold was released, or taken over
  return 'B' .. describe(count())
end
local _, _, _, own = parts(payload)
local old, others
local left = {}
for _, member in ipairs(shares > 0 and redis.call('ZRANGEBYSCORE', state, '1', '+inf') or exclusive) do
  local holder, theirs = string.sub(member, 1, 26), string.sub(member, 27)
  if string.byte(holder, 3) ~= MODE_REMAINDER then
    local first = mine(holder, theirs)
    local _, block, _, owner = parts(theirs)
    -- It is meant when it is of this owner, or of none and has this very id; and when the token is
    -- one of its block.
    if string.byte(holder, 3) ~= MODE_SHARED and (owner == ARGV[5] or owner == '' and string.sub(holder, 5) == ARGV[5])
      and first <= ARGV[6] and ARGV[6] <= string.format('%016.0f', tonumber(first) + tonumber(block) - 1) then
      old = member
    elseif owner == '' or owner ~= own then
      others = true
    end
  else
    table.insert(left, member)
  end
end
local lineage = {}
for _, member in ipairs(old and left or {}) do
  local _, _, _, owner = parts(string.sub(member, 27))
  if extra(string.sub(member, 27), 'to') == string.sub(old, 5, 26) then
    table.insert(lineage, member)
  elseif owner == '' or owner ~= own then
    others = true
  end
end
if not old or others then
  return 'B' .. describe(count())
end
token = take('1')
local _, label = tail(payload)
local _, _, channel = parts(string.sub(old, 27))
for _, member in ipairs(lineage) do
  retarget(member, string.sub(old, 5, 26), string.sub(ticket, 5))
end
remain(old, 'r', label, string.sub(ticket, 5))
admit(ticket, payload, token, ARGV[3])
if channel ~= '' then
  publish(channel, '2R' .. string.sub(old, 5, 26))
end
return 'H' .. token .. '1|' .. now
