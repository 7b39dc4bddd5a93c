-- ask: hold a name at this node, or be remembered as one who waits, or only look; or take over the hold of an owner.
--
-- KEYS  1 state of the name, 2 who waits, 3 who watches, 4 facts of the node
-- ARGV  1 id, 2 mode, 3 length ":" owner label, 4 owner, 5 TTL in ms, 6 not after (server us), 7 "j" join, "t" try, "r" repair,
--       8 first and 9 last token proposed, 10 round, 11 bucket, 12 id to give back or "", 13 length ":" owner channel, or ""
--       when no message reaches it, 14 us since when it waits, 15 ms that it is remembered, 16 owner or id and 17 token of
--       the hold to take over, or "" and "", 18 ms of the longest TTL that the client may ask for
-- reply "H" facts first last       it holds, and its tokens are accepted
--       "T" facts                  it holds, but a larger token was accepted before
--       "B" facts remaining "|" holders "|" waiters "|" id length ":" owner label    another holds
--       "Y" facts                  what it gave back is left to one who waits
--       "U" facts                  its owner shares the name, and it excludes
--       "F" what                   the key is of another kind or format, and was not touched
--       "L" now                    it came too late and did nothing
-- Replays: an id that holds keeps its place, with the full TTL; its tokens rise or stay.

--@include state
if now > ARGV[6] then
  return 'L' .. now
end
--@include facts
local key, id, mode, owner = KEYS[1], ARGV[1], ARGV[2], ARGV[4]
local holds, odd, replaced = live(key, mode)
if not holds then
  return 'F' .. odd
end
local head, last = facts(KEYS[4], ARGV[11], ARGV[18]) -- so whatever forgets the TTL forgets the hold
local given = ARGV[12] ~= '' and holds[ARGV[12]]
if ARGV[12] ~= '' then
  redis.call('ZREM', KEYS[2], ARGV[12] .. mode .. ARGV[13])
  ended(key, replaced, ARGV[12])
end
if given then
  redis.call('HDEL', key, ARGV[12], '<' .. ARGV[12])
  holds[ARGV[12]] = nil
end

-- stands tells whether a resume keeps this owner out for what it replaced: that is trusted until a majority agrees to the resume.
local function stands(under, owner)
  return under and tonumber(string.sub(under, 26, 38)) > ms and owner_of(under, 87) ~= owner
end

local mine, old, other, sharers = holds[id], nil, nil, false
local count, soonest = 0, nil
for held, value in pairs(holds) do
  if held ~= id then
    count = count + 1
    local theirs = owner_of(value, 65)
    local shares = string.sub(value, 3, 3) == 's'
    if ARGV[16] ~= '' and ARGV[17] >= string.sub(value, 17, 32) and ARGV[17] <= string.sub(value, 33, 48) and
      (theirs == ARGV[16] or theirs == '' and held == ARGV[16]) then
      old = held
    elseif owner ~= '' and theirs == owner and not stands(replaced['<' .. held], owner) then
      if shares and string.sub(mode, 3) ~= 's' and not mine then
        return 'U' .. head .. last
      end
    elseif not (shares and string.sub(mode, 3) == 's') then
      local ends = tonumber(string.sub(value, 4, 16))
      soonest = math.min(soonest or ends, ends)
      if not other or held < other then -- every node names the same
        other = held
      end
    elseif not sharers or held < sharers then
      sharers = held
    end
  end
end

local waiter = ARGV[13] ~= '' and id .. mode .. ARGV[13]
if given and not mine and count == 0 then
  local next = redis.call('ZRANGE', KEYS[2], '0', '1')
  if next[1] and next[1] ~= '!' and next[1] ~= waiter then
    wake(KEYS[2], 0)
    if waiter and ARGV[7] == 'j' then
      redis.call('ZADD', KEYS[2], now, waiter)
      redis.call('PEXPIRE', KEYS[2], ARGV[15])
    end
    return 'Y' .. head .. last
  end
end

-- One who excludes and was refused because others share keeps new ones of them out for half a second, so that they end.
local held_off = 0
if sharers and not other and not mine and ARGV[7] ~= 'r' then
  held_off = HELD_OFF - (ms - math.floor((tonumber(redis.call('ZSCORE', KEYS[2], '!')) or 0) / 1000))
  if held_off > 0 then
    other, soonest = sharers, ms + held_off
  end
end

if other or ARGV[16] ~= '' and not old and not mine then
  local waiters = redis.call('ZCARD', KEYS[2])
  if waiter and ARGV[7] == 'j' then
    redis.call('ZADD', KEYS[2], string.format('%.0f', tonumber(now) - tonumber(ARGV[14])), waiter)
    if string.sub(mode, 3) ~= 's' and string.sub(holds[other], 3, 3) == 's' then
      redis.call('ZADD', KEYS[2], now, '!')
    end
    redis.call('PEXPIRE', KEYS[2], ARGV[15])
  end
  local what = '0|' .. count .. '|' .. waiters .. '|'
  if other then
    what = string.format('%.0f', soonest - ms) .. '|' .. count .. '|' .. waiters .. '|' .. other .. string.sub(holds[other], 65)
  end
  return 'B' .. head .. last .. what
end

local first, final = ARGV[8], ARGV[9]
local accepted = first > last
if accepted then
  last = final
  redis.call('HSET', KEYS[4], ARGV[11], final)
elseif ARGV[7] == 'r' then
  if final > last then
    redis.call('HSET', KEYS[4], ARGV[11], final)
  end
elseif mine then
  first, final = string.sub(mine, 17, 32), string.sub(mine, 33, 48)
else
  first, final = NONE, NONE
end
local round, ends = ARGV[10], ms + tonumber(ARGV[5])
if mine then
  if string.sub(mine, 49, 64) > round then
    round = string.sub(mine, 49, 64)
  end
  ends = math.max(ends, tonumber(string.sub(mine, 4, 16))) -- it may have been confirmed for so long
end
if old then
  redis.call('HSET', key, '<' .. id, old .. holds[old])
  redis.call('HDEL', key, old, '<' .. old)
end
if ARGV[16] ~= '' then -- until this is confirmed, what it replaces is trusted, and keeps others out to its own end
  local under = old and old .. holds[old] or replaced['<' .. id]
  ends = math.max(ends, under and tonumber(string.sub(under, 26, 38)) or 0)
end
redis.call('HSET', key, id, mode .. string.format('%013.0f', ends) .. first .. final .. round .. ARGV[3])
outlive(key, ends)
if not mine and ARGV[7] ~= 'r' then
  leave(KEYS[2], id, mode, ARGV[13])
  changed(KEYS[3])
end
if accepted or ARGV[7] == 'r' then
  return 'H' .. head .. last .. first .. final
end
return 'T' .. head .. last
