-- tell: tell the holders of a name that another caller wants it, or have a waiter show life.
--
-- KEYS  1 state of the name, 2 clock of its slot, 3 queue, 4 watchers
-- ARGV  1 a ticket of the kind, 2 the id of a waiter, or "" for the holders, 3 life of a place in ms
-- reply how many holds there are, or open places of this id, "|", and how many of their processes may hear it; "F" and "f" as for ask
-- It changes nothing.

--@untouched
--@include codes
--@include time
local life = tonumber(ARGV[3])
--@include holds
--@include publish
--@include messages
--@include queue

local odd = look(ARGV[1])
if odd then
  return odd
end
local members, message, after = shares > 0 and redis.call('ZRANGEBYSCORE', state, '1', '+inf') or exclusive, RECALL, ''
if ARGV[2] ~= '' then
  members, message, after = redis.call('ZRANGEBYSCORE', queue, PLACES, '+inf'), ASK, '0'
end
local found, heard = 0, 0
for _, member in ipairs(members) do
  local id = string.sub(member, ID_AT, TICKET)
  if string.byte(member, MODE_AT) ~= MODE_REMAINDER and (ARGV[2] == '' or ARGV[2] == id) then
    local _, _, channel = parts(string.sub(member, PAYLOAD_AT))
    found = found + 1
    if channel ~= '' and listens(channel) ~= false then
      publish(channel, message .. id .. after)
      heard = heard + 1
    end
  end
end
return found .. '|' .. heard
