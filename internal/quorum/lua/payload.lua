-- payload: takes apart what the package document says of payloads. PAYLOAD is where that of a hold
-- begins, in its value.

local PAYLOAD = 65

-- parts are the channel, the owner, the extras and the label of the payload that begins at a place
-- in a text.
local function parts(text, from)
  local channel, owner, extras, at = string.match(text, '^%d+f?:(%d+):(%d+):(%d+):()', from)
  channel = at + channel
  owner = channel + owner
  extras = owner + extras
  return string.sub(text, at, channel - 1), string.sub(text, channel, owner - 1), string.sub(text, owner, extras - 1),
    string.sub(text, extras)
end

-- extra is the value of a named extra; nil when there is none.
local function extra(extras, name)
  local at = 1
  while at <= #extras do
    local key, length, from = string.match(extras, '^(%a+):(%d+):()', at)
    if not key or key == name then
      return key and string.sub(extras, from, from + length - 1)
    end
    at = from + length
  end
end

-- having is a value with other extras.
local function having(value, extras)
  local channel, owner, _, label = parts(value, PAYLOAD)
  return string.sub(value, 1, PAYLOAD - 1) .. string.match(value, '^%d+f?:', PAYLOAD) .. #channel .. ':' .. #owner .. ':' .. #extras ..
    ':' .. channel .. owner .. extras .. label
end

-- broken is the remainder of a hold that these breaks ended, of which the first was by a caller
-- with this label. That is what its extras begin with.
local function broken(value, by, breaks)
  local _, _, extras = parts(value, PAYLOAD)
  return having(value, 'by:' .. #by .. ':' .. by .. 'of:' .. #breaks .. ':' .. breaks .. extras)
end

-- broken_by is the label of the caller that broke the hold of which a remainder is left.
local function broken_by(value)
  local _, _, extras = parts(value, PAYLOAD)
  return extra(extras, 'by')
end

-- breaks_of are the ids of the breaks that made a remainder, one after the other; nil of what min
-- holds leave. They are empty if nothing is to be taken back, as the holder has stopped.
local function breaks_of(value)
  local _, _, extras = parts(value, PAYLOAD)
  return extra(extras, 'of')
end

-- before is the hold of which a break left a remainder: without the two extras of that.
local function before(value)
  local _, _, extras = parts(value, PAYLOAD)
  local from = 1
  for _ = 1, 2 do
    local length, at = string.match(extras, '^%a+:(%d+):()', from)
    from = at + length
  end
  return having(value, string.sub(extras, from))
end

-- with_breaks is a remainder that a break left, with other breaks.
local function with_breaks(value, breaks)
  return broken(before(value), broken_by(value), breaks)
end

-- but_for are the breaks but for one; nil if that is none of them.
local function but_for(breaks, id)
  for at = 1, #breaks, 22 do
    if string.sub(breaks, at, at + 21) == id then
      return string.sub(breaks, 1, at - 1) .. string.sub(breaks, at + 22)
    end
  end
end
