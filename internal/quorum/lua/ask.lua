-- ask: hold a name at this node, or be remembered as one who waits, or only look.
--
-- KEYS  1 state of the name, 2 who waits, 3 who watches, 4 facts of the node
-- ARGV  1 id, 2 mode, 3 payload, 4 owner, 5 TTL in ms, 6 not after (server us), 7 "j" join,
--       "t" try, "r" repair, 8 first and 9 last token proposed, 10 round, 11 bucket, 12 id to give
--       back or "", 13 length ":" owner channel, or "" when no message reaches it, 14 us since when
--       it waits, 15 ms that it is remembered, 16 ms of the longest TTL that the client may ask for
-- reply "H" facts first last       it holds, and its tokens are accepted
--       "T" facts                  it holds, but a larger token was accepted before
--       "B" facts remaining "|" holders "|" waiters "|" id first payload    another holds, or a
--                                  remainder keeps it out
--       "Y" facts                  what it gave back is left to a waiter
--       "U" facts                  its owner shares the name, and it excludes
--       "R" facts by               it held, and a caller with that label broke the hold
--       "F" what                   the key is of another kind or format, and was not touched
--       "L" now                    it came too late and did nothing
-- Replays: an id that holds keeps its place, with the full TTL; its tokens rise or stay. One whose
-- hold was broken leaves no place.

--@include state
if now > ARGV[6] then
  return 'L' .. now
end
--@include facts
local key, id, mode, owner = KEYS[1], ARGV[1], ARGV[2], ARGV[4]
local holds, left = live(key, mode)
if not holds then
  return 'F' .. left
end
local head, last = facts(KEYS[4], ARGV[11], ARGV[16]) -- so whatever forgets the TTL forgets the hold
local given = ARGV[12] ~= '' and (holds[ARGV[12]] or left['-' .. ARGV[12]])
if ARGV[12] ~= '' then
  redis.call('ZREM', KEYS[2], ARGV[12] .. mode .. ARGV[13])
end
if given then
  redis.call('HDEL', key, ARGV[12], '-' .. ARGV[12])
  holds[ARGV[12]], left['-' .. ARGV[12]] = nil, nil
end

-- Of several ids the smallest is told, so that every node names the same.
local function smaller(one, other)
  return (not other or one < other) and one or other
end

local shares = string.sub(mode, 3) == 's'
local mine, late = holds[id], left['-' .. id]
if late then
  return 'R' .. head .. last .. broken_by(late)
end
local other, named -- a hold that keeps it out, and a hold that is there
local own, reads, shared = false, false, false -- its owner excludes others, or shares; another shares as it does
local barred = false -- it is kept out by some that share
local count, hard, soft = 0, nil, nil -- when the first is over that keeps it out and excludes, or that keeps it out otherwise
for held, value in pairs(holds) do
  if held ~= id then
    local _, theirs = parts(value, PAYLOAD)
    local excludes, same = string.sub(value, 3, 3) ~= 's', owner ~= '' and theirs == owner
    count, named = count + 1, smaller(held, named)
    own, reads = own or same and excludes, reads or same and not excludes
    if not same and excludes then
      other, hard = smaller(held, other), math.min(hard or ends_at(value), ends_at(value))
    elseif not same and not shares then
      other, soft, barred = smaller(held, other), math.min(soft or ends_at(value), ends_at(value)), true
    end
    shared = shared or not same and not excludes and shares
  end
end
if reads and not shares and not mine then
  return 'U' .. head .. last
end

-- A remainder excludes as the hold did. Beside a remainder of its owner a caller enters only where
-- a hold of that owner excludes others, too.
-- One of those that keep it out is told, and that is a broken one if there is any.
local kept, remainders, told = false, 0, nil
for _, value in pairs(left) do
  local _, theirs = parts(value, PAYLOAD)
  local excludes = string.sub(value, 3, 3) ~= 's'
  local beside = mine or own and theirs == owner
  remainders = remainders + 1
  if not beside and not excludes and shares then
    shared = true
  elseif not beside then
    if not told or broken_by(value) then
      told = string.sub(value, PAYLOAD)
    end
    kept, soft, barred = true, math.min(soft or ends_at(value), ends_at(value)), barred or not excludes
  end
end

local waiter = ARGV[13] ~= '' and id .. mode .. ARGV[13]
if given and not mine and count + remainders == 0 then
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

-- A waiter that excludes, and was refused because others share, keeps new sharers out for half a
-- second, so that their time ends; not a sharer whose owner shares already. A time that is yet to
-- come says that the clock was set back since.
local held_off = false
if shared and not (other or kept or mine or reads) and ARGV[7] ~= 'r' then
  local since = redis.call('ZSCORE', KEYS[2], '!')
  local past = since and ms - math.floor(since / 1000)
  if past and past >= 0 and past < HELD_OFF then
    held_off, soft = true, ms + HELD_OFF - past
  end
end

if other or kept or held_off then
  local waiters = redis.call('ZCARD', KEYS[2])
  if waiter and ARGV[7] == 'j' then
    redis.call('ZADD', KEYS[2], string.format('%.0f', tonumber(now) - tonumber(ARGV[14])), waiter)
    if not shares and barred then
      redis.call('ZADD', KEYS[2], now, '!')
    end
    redis.call('PEXPIRE', KEYS[2], ARGV[15])
  end
  local who, which = '', other or named
  if which then
    who = which .. string.sub(holds[which], 17, 32) .. string.sub(holds[which], PAYLOAD)
  elseif remainders > 0 then
    who = told and string.sub(NOBODY, 1, 38) .. told or NOBODY
  end
  local over = hard or soft or which and ends_at(holds[which]) or ms
  return 'B' .. head .. last .. string.format('%.0f', over - ms) .. '|' .. (count > 0 and count or remainders) .. '|' .. waiters .. '|' .. who
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
  ends = math.max(ends, ends_at(mine)) -- it may have been confirmed for so long
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
