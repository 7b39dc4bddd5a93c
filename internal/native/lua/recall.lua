-- recall: those that retain a hold are told that others want it. Includes codes, payload and publish come before it.

-- recall tells the process of a hold that another ticket asks, if the hold may be unused there.
local function recall(held, payload)
  if string.find(payload, RETAINS, 1, true) and extra(payload, 'retain') and string.byte(held, MODE_AT) ~= MODE_REMAINDER then
    local _, _, channel = parts(payload)
    publish(channel, RECALL .. string.sub(held, ID_AT, TICKET))
  end
end
