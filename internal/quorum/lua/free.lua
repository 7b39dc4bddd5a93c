-- free: give a hold back, or cease to wait, and wake who waits.
--
-- KEYS  1 state of the name, 2 who waits, 3 who watches
-- ARGV  1 id, 2 mode, 3 round: a hold of a later one stays, 4 ms for which nobody may enter (the rest of a min hold), or "0",
--       5 "f" a holder frees, "q" quietly: a try that failed, "w" a waiter gave up, "p" it does not wait any more, and holds
--       elsewhere: a hold stays,
--       6 length ":" owner channel, or "" when no message reached it
-- reply "1"         there was a hold, or a remainder that the break had made
--       "0"         there was none
--       "R" by      a caller with that label broke it: what remained of it is removed, or ends
--                   after 4 if that is sooner
--       "F" what    the key is of another kind or format, and was not touched
-- Replays find nothing and change nothing. Commands that free memory come before those that need it.

--@include state
local key, id, how = KEYS[1], ARGV[1], ARGV[5]
local holds, left = live(key, ARGV[2])
if not holds then
  return 'F' .. left
end

-- take_back makes holds again of what this break has ended, unless another break has ended it too.
local function take_back()
  local was = '0'
  for field, value in pairs(left) do
    local breaks = breaks_of(value)
    local others = breaks and but_for(breaks, id)
    if others then
      was = '1'
    end
    if others == '' then
      redis.call('HSET', key, string.sub(field, 2), before(value)) -- first: an empty key is gone, with its TTL
      redis.call('HDEL', key, field)
    elseif others then
      redis.call('HSET', key, field, with_breaks(value, others))
    end
  end
  return was
end
if how == 'b' then
  return take_back()
end

local opened = leave(KEYS[2], id, ARGV[2], ARGV[6])
local function meant(value)
  return value and string.sub(value, 49, 64) <= ARGV[3] and how ~= 'p' and value or nil
end
local mine, late = meant(holds[id]), meant(left['-' .. id])
local keep = tonumber(ARGV[4])

-- rest is what a min hold leaves of a hold. With what others have left it is one: as long as the
-- longer, and of their owner if that is the same, else of nobody.
local function rest()
  local field, ends = REST .. string.sub(mine, 3, 3), ms + keep
  local _, owner = parts(mine, PAYLOAD)
  if left[field] then
    local _, theirs = parts(left[field], PAYLOAD)
    owner, ends = theirs == owner and owner or '', math.max(ends, ends_at(left[field]))
  end
  left[field] = string.sub(mine, 1, 3) .. string.format('%013.0f', ends) .. string.sub(mine, 17, 48) .. NONE .. '0:0:' .. #owner ..
    ':0:' .. owner
  redis.call('HSET', key, field, left[field])
end

-- expire lets the key last as long as what is left in it.
local function expire()
  local last = 0
  for _, all in ipairs({holds, left}) do
    for _, value in pairs(all) do
      last = math.max(last, ends_at(value))
    end
  end
  if last > 0 then
    redis.call('PEXPIREAT', key, string.format('%.0f', last))
  end
end

local by = late and broken_by(late)
if late then
  redis.call('HDEL', key, '-' .. id)
  if keep <= 0 then
    left['-' .. id] = nil
  else -- it is broken for good: taking a break back does not bring it back
    local ends = math.min(ms + keep, ends_at(late))
    late = string.sub(late, 1, 3) .. string.format('%013.0f', ends) .. string.sub(late, 17)
    left['-' .. id] = with_breaks(late, '')
    redis.call('HSET', key, '-' .. id, left['-' .. id])
  end
end
if mine then
  redis.call('HDEL', key, id)
  holds[id] = nil
end
if mine and keep > 0 then
  rest()
end
if mine or late then
  expire()
end

local shared = mine and string.sub(mine, 3, 3) ~= 's' -- from now on: an owner may share what it excluded others from
local own = false -- others of the owner that holds may enter, once a remainder is gone
for _, value in pairs(holds) do
  local _, owner = parts(value, PAYLOAD)
  shared, own = shared and string.sub(value, 3, 3) == 's', own or owner ~= ''
end
local after, early = 0, false -- how long remainders keep others out; they may be given back before
for field, value in pairs(left) do
  shared = shared and string.sub(value, 3, 3) == 's'
  if not next(holds) then
    after, early = math.max(after, ends_at(value) - ms), early or string.sub(field, 1, 1) == '-'
  end
end
if shared or opened then
  after = 0
end
local ends = mine and how == 'f' or late and how == 'f' or how == 'w'
if opened or (shared or not next(holds)) and ends or late and own then
  wake(KEYS[2], after, early)
end
if mine and how == 'f' then
  changed(KEYS[3])
end
if late and how == 'f' then
  return 'R' .. by
end
return mine and '1' or '0'
