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

-- mark is what the extras of a remainder begin with: why it is one, the label of the caller behind
-- that, and a third of a name.
local function mark(why, by, name, what)
  return 'why:1:' .. why .. 'by:' .. #by .. ':' .. by .. name .. ':' .. #what .. ':' .. what
end

-- taking is the mark of a hold that was taken over. "to" is the id that the remainder does not
-- exclude, and how many callers took over after the first; the id is that of the last.
local function taking(by, to, more)
  return mark('r', by, 'to', to .. string.format('%.0f', more))
end

-- successor is the id that a remainder does not exclude, and how many callers took over after the
-- first; nil of what a min hold or a break leaves.
local function successor(value)
  local _, _, extras = parts(value, PAYLOAD)
  local to = extra(extras, 'to')
  if to then
    return string.sub(to, 1, 22), tonumber(string.sub(to, 23))
  end
end

-- taken is what a remainder tells: why, and by whom.
local function taken(value)
  local _, _, extras = parts(value, PAYLOAD)
  return extra(extras, 'why') .. extra(extras, 'by')
end

-- having is a value with other extras.
local function having(value, extras)
  local channel, owner, _, label = parts(value, PAYLOAD)
  return string.sub(value, 1, PAYLOAD - 1) .. string.match(value, '^%d+f?:', PAYLOAD) .. #channel .. ':' .. #owner .. ':' .. #extras ..
    ':' .. channel .. owner .. extras .. label
end

-- remaining is the remainder of a hold that a caller with this label and id takes over.
local function remaining(value, by, to)
  local _, _, extras = parts(value, PAYLOAD)
  return having(value, taking(by, to, 0) .. extras)
end

-- before is the hold of which a remainder is left: without the three extras of its mark.
local function before(value)
  local _, _, extras = parts(value, PAYLOAD)
  local from = 1
  for _ = 1, 3 do
    local length, at = string.match(extras, '^%a+:(%d+):()', from)
    from = at + length
  end
  return having(value, string.sub(extras, from))
end

-- breaks_of are the ids of the breaks that made a remainder, one after the other; nil of another
-- remainder. They are empty if nothing is to be taken back, as the holder has stopped.
local function breaks_of(value)
  local _, _, extras = parts(value, PAYLOAD)
  return extra(extras, 'why') == 'b' and extra(extras, 'of') or nil
end

-- broken is the remainder of a hold that these breaks ended, of which the first was by a caller
-- with this label.
local function broken(value, by, breaks)
  local _, _, extras = parts(value, PAYLOAD)
  return having(value, mark('b', by, 'of', breaks) .. extras)
end

-- broken_by is a remainder that a break left, with other breaks.
local function broken_by(value, breaks)
  local _, _, extras = parts(value, PAYLOAD)
  return broken(before(value), extra(extras, 'by'), breaks)
end

-- but_for are the breaks but for one; nil if that is none of them.
local function but_for(breaks, id)
  for at = 1, #breaks, 22 do
    if string.sub(breaks, at, at + 21) == id then
      return string.sub(breaks, 1, at - 1) .. string.sub(breaks, at + 22)
    end
  end
end

-- passed is a remainder that goes to another id: to the next that takes over (1), or back when that
-- is undone (-1).
local function passed(value, to, step)
  local _, _, extras = parts(before(value), PAYLOAD)
  local _, more = successor(value)
  local _, _, all = parts(value, PAYLOAD)
  return having(value, taking(extra(all, 'by'), to, more + step) .. extras)
end
