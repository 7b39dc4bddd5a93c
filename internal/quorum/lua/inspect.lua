-- inspect: tell the state of a name, whatever it is used as, and the facts of the node.
--
-- KEYS  1 state of the name, 2 facts of the node
-- ARGV  1 how many holds and remainders to tell at most
-- reply "I" facts seen longest "|" count "|" length ":" odd, and for each that is told: length ":" length ":" field value
--       seen     "1", or "0" where the server was started since a client last looked at its memory
--                (node.lua): the next client that asks for something lets the memory begin anew
--       longest  ms of the longest TTL that any client may ask for, as far as the node was told
--       count    of all holds and remainders; those with the smallest tokens are told
--       odd      what stands at the key and is none of ours; then nothing is counted
-- Changes nothing: the birth is zeros where nobody has used the node yet, and what is over stays.

--@include state
local known = redis.call('HMGET', KEYS[2], 'born', 'counts', 'longest', 'run')
local born, floor, longest, run = known[1] or NONE, known[2], known[3] or '0', known[4]
local seen = '1'
local info = redis.pcall('INFO', 'server')
local runs = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
if runs ~= '' and runs ~= run then
  local kept = redis.pcall('INFO', 'persistence')
  if not (run and type(kept) == 'string' and string.find(kept, 'aof_enabled:1', 1, true)) then
    seen = '0'
  end
end

local all, is, kind, told = all_of(KEYS[1]), '', nil, {}
if not all then
  all, is = {}, 'of another type'
end
for i = 1, #all, 2 do
  local field, value = all[i], all[i + 1]
  local other = odd(value)
  if other then
    is = string.find(is, 'format %d') and is or other
  elseif ends_at(value) > ms then
    local this = string.sub(value, 2, 2)
    kind = kind or this
    if this ~= kind and is == '' then
      is = 'locks of kinds ' .. kind .. ' and ' .. this
    end
    local first = string.sub(value, 17, 32)
    table.insert(told, {(first == NONE and '~' or first) .. field, field, value})
  end
end
if is ~= '' then
  told = {}
end
table.sort(told, function(one, other)
  return one[1] < other[1]
end)
local reply = {'I' .. now .. born .. named(run) .. (floor and '1' or '0') .. NONE .. seen .. longest .. '|' .. #told .. '|' .. #is .. ':' .. is}
for i = 1, math.min(#told, tonumber(ARGV[1])) do
  local field, value = told[i][2], told[i][3]
  table.insert(reply, #field .. ':' .. #value .. ':' .. field .. value)
end
return table.concat(reply)
