-- state: what the scripts share. The state of a name is a hash, as the package document says. Each
-- field is a hold, or the remainder of one:
--   id -> mode(3) end(13, ms) first(16) last(16) round(16) payload
-- first and last are the tokens reserved for the hold, zeros when none was accepted. The field of a
-- remainder is "-" id, or REST and "x" or "s" for what min holds leave.

--@include payload

local FORMAT = '3' -- of values, waiters and messages
local NONE, REST = '0000000000000000', string.rep('~', 21)
-- NOBODY holds where only remainders are left: an id, a token and a payload.
local NOBODY = REST .. '~' .. NONE .. '0:0:0:0:'
-- AGREED is the round of a hold that was confirmed since: what gives a round back is late, and
-- leaves it alone.
local AGREED = '4503599627370495'
local time = redis.call('TIME')
local now = string.sub(NONE .. time[1] .. string.sub('00000' .. time[2], -6), -16)
local ms = math.floor(tonumber(now) / 1000)

-- named is the beginning of what a server is known by, in replies; zeros if that is not known.
local function named(run)
  return string.sub((run or '') .. NONE, 1, 16)
end

local function ends_at(value)
  return tonumber(string.sub(value, 4, 16))
end

-- odd says what a value is that is none of ours; nil of one of ours.
local function odd(value)
  local form = string.match(value, '^(%d)%a[xs]%d+')
  if form and form ~= FORMAT and #value >= PAYLOAD then
    return 'a lock of kind ' .. string.sub(value, 2, 2) .. ', format ' .. form
  elseif not form or not ends_at(value) or not string.find(value, '^%d+f?:%d+:%d+:%d+:', PAYLOAD) then
    return 'not of this format'
  end
end

-- all_of are the fields and values of a hash; nil of a key of another type. Any other refusal is
-- raised.
local function all_of(key)
  local all = redis.pcall('HGETALL', key)
  if not all.err then
    return all
  elseif string.find(all.err, 'WRONGTYPE', 1, true) then
    return nil
  end
  return redis.call('HGETALL', key)
end

-- live reads the holds whose time is not over, by id, and the remainders, by field, and takes the
-- others out. Or it says what is there instead, and touches nothing. Without a mode any kind will
-- do.
local function live(key, mode)
  local all = all_of(key)
  if not all then
    return nil, 'of another type'
  end
  local holds, left, over, is = {}, {}, {}, nil
  for i = 1, #all, 2 do
    local field, value = all[i], all[i + 1]
    local other = odd(value)
    if other then
      is = is ~= nil and string.find(is, 'format %d') and is or other
    elseif ends_at(value) <= ms then
      table.insert(over, field)
    elseif mode ~= '' and string.sub(value, 2, 2) ~= string.sub(mode, 2, 2) then
      is = is or 'a lock of kind ' .. string.sub(value, 2, 2) .. ', format ' .. FORMAT
    elseif #field == 23 and string.sub(field, 1, 1) == '-' or string.sub(field, 1, 21) == REST then
      left[field] = value
    else
      holds[field] = value
    end
  end
  if is then
    return nil, is
  end
  for _, field in ipairs(over) do
    redis.call('HDEL', key, field)
  end
  return holds, left
end

-- owner_of is the owner of a waiter, and where its channel begins. The waiter goes on with
-- length ":" owner channel from that place.
local function owner_of(text, from)
  local colon = string.find(text, ':', from, true)
  local size = tonumber(string.sub(text, from, colon - 1))
  return string.sub(text, colon + 1, colon + size), colon + size + 1
end

-- outlive keeps a key as long as its longest hold.
local function outlive(key, ends)
  if redis.call('PTTL', key) < ends - ms then
    redis.call('PEXPIREAT', key, string.format('%.0f', ends))
  end
end

-- HELD_OFF is how many ms new sharers are kept out after each ask of a waiter that excludes. "!"
-- says so. It lives no longer than that where no waiter is known any more: a waiter that was told
-- may not come.
local HELD_OFF = 500
local function alone(waiting)
  if redis.call('ZCARD', waiting) == 1 and redis.call('ZSCORE', waiting, '!') and redis.call('PTTL', waiting) > HELD_OFF then
    redis.call('PEXPIRE', waiting, HELD_OFF)
  end
end

-- ceased is for a waiter that excludes and waits no more: if no other of them is known to wait, new
-- sharers are not kept out any more.
local function ceased(waiting, mode)
  if string.sub(mode, 2, 3) ~= 'rx' then
    return false
  end
  for _, waiter in ipairs(redis.call('ZRANGE', waiting, '0', '31')) do
    if waiter ~= '!' and string.sub(waiter, 25, 25) ~= 's' then
      return false
    end
  end
  return redis.call('ZREM', waiting, '!') == 1
end

-- leave is for a ticket that waits no more. One that shares may have waited to exclude, where
-- another kept it out, and was downgraded since.
local function leave(waiting, id, mode, waiter)
  if waiter ~= '' then
    redis.call('ZREM', waiting, id .. mode .. waiter)
    local before = string.sub(mode, 1, 2) .. 'x'
    if before ~= mode and redis.call('ZREM', waiting, id .. before .. waiter) == 1 then
      mode = before
    end
  end
  local opened = ceased(waiting, mode)
  if string.sub(mode, 2, 2) == 'r' then
    alone(waiting)
  end
  return opened
end

-- wake tells waiters that the name is free after some ms: the waiter that waits longest at once,
-- and with it all that can hold beside it; the next two a little later, should the first not come.
-- A waiter that is told at once is forgotten until it asks again, but not if the name may be free
-- sooner (early): then it is told again.
-- A waiter is id mode length ":" owner channel; its score is the time since which it waits.
local function wake(waiting, after, early)
  local told, first, owner, off = 0, nil, nil, false
  for _, waiter in ipairs(redis.call('ZRANGE', waiting, '0', '31')) do
    if waiter == '!' then
      off = true
    elseif string.sub(waiter, 23, 23) == FORMAT then
      local mine, from = owner_of(waiter, 26)
      local beside = not first or string.sub(waiter, 25, 25) == 's' and string.sub(first, 25, 25) == 's' or mine ~= '' and mine == owner
      local delay = after
      if not beside then
        delay = after + (told == 1 and 25 or 75)
      end
      if beside or told < 3 then
        local text = FORMAT .. 'N' .. string.sub(waiter, 1, 22) .. string.format('%.0f', delay)
        local heard = redis.pcall('PUBLISH', string.sub(waiter, from), text)
        if heard == 0 or beside and not early then
          redis.call('ZREM', waiting, waiter)
        end
        if heard ~= 0 then
          told = told + 1
          if not first then
            first, owner = waiter, mine
          end
        end
      end
    end
  end
  if off then
    alone(waiting)
  end
end

-- changed tells each watcher of the name once. A watcher is id channel.
local function changed(watching)
  for _, watcher in ipairs(redis.call('ZRANGE', watching, '0', '-1')) do
    redis.pcall('PUBLISH', string.sub(watcher, 23), FORMAT .. 'N' .. string.sub(watcher, 1, 22) .. '0')
  end
  redis.call('DEL', watching)
end
