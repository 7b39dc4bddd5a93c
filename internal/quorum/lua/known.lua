-- known: tell which names the node knows, and whether it has known them since a moment.
--
-- KEYS  the states of names
-- ARGV  1 the moment, in ms of the server's time
-- reply a letter a name: "0" it does not know the name, "1" it has known it since, "2" it may have learned of it after the moment
-- Changes nothing. What stands at a key and is none of ours was there before, as far as is known.

--@include state
local function known(key)
  local all = all_of(key)
  if not all then
    return '1'
  end
  local told = '0'
  for i = 2, #all, 2 do
    local value = all[i]
    if odd(value) then
      return '1'
    end
    if ends_at(value) > ms then
      told = '2'
      if ends_at(value) - tonumber(string.match(value, '^%d+', PAYLOAD)) < tonumber(ARGV[1]) then
        return '1'
      end
    end
  end
  return told
end

local reply = {}
for i = 1, #KEYS do
  reply[i] = known(KEYS[i])
end
return table.concat(reply)
