-- recall: the processes of holds are told that others want the name. Includes codes, payload and publish come before it.

-- recall tells the process of a hold that another ticket asks, if the ticket of the hold says that
-- it is to be told.
local function recall(held, payload)
  if string.find(payload, HEARS, 1, true) and extra(payload, 'hears') and string.byte(held, MODE_AT) ~= MODE_REMAINDER then
    local _, _, channel = parts(payload)
    publish(channel, RECALL .. string.sub(held, ID_AT, TICKET))
  end
end
