-- payload: takes apart what the package document says of payloads.

-- parts is claim, block, channel and owner. What is no payload has no claim, and is of nobody.
local function parts(payload)
  local claim, block, channel, owner, from = string.match(payload, '^(%d+)[%d/]*:(%d+):%d+f?:(%d+):(%d+):%d+:()')
  if not claim then
    return nil, nil, '', ''
  end
  channel, owner = tonumber(channel), tonumber(owner)
  return claim, block, string.sub(payload, from, from + channel - 1),
    string.sub(payload, from + channel, from + channel + owner - 1)
end

-- tail is what comes last: the extras, and the label.
local function tail(payload)
  local channel, owner, extras, from = string.match(payload, '^[%d/]+:%d+:%d+f?:(%d+):(%d+):(%d+):()')
  if not from then
    return '', ''
  end
  from = from + channel + owner
  return string.sub(payload, from, from + extras - 1), string.sub(payload, from + extras)
end

-- extra is the value of a named extra; nil when there is none.
local function extra(payload, name)
  local extras, at = tail(payload), 1
  while at <= #extras do
    local key, length, from = string.match(extras, '^(%a+):(%d+):()', at)
    if not key or key == name then
      return key and string.sub(extras, from, from + length - 1)
    end
    at = from + length
  end
  return nil
end

-- fixed tells whether the hold is not renewed.
local function fixed(payload)
  return string.find(payload, '^[%d/]+:%d+:%d+f:') ~= nil
end

-- leftover is the ticket of the remainder of a ticket's hold.
local function leftover(ticket)
  return string.sub(ticket, 1, STAMP) .. '-' .. string.sub(ticket, COLON_AT, TICKET)
end

-- broken_by is the label of the caller that broke the hold of which a remainder is left; nil of one
-- that a min hold left.
local function broken_by(remainder)
  local payload = string.sub(remainder, PAYLOAD_AT)
  return extra(payload, 'why') == 'b' and extra(payload, 'by') or nil
end
