-- inspect: tell what is known of a name, and change nothing.
--
-- KEYS  1 state of the name, 2 queue
-- ARGV  1 the number of the format, 2 how many holds to tell, 3 how many places, 4 the place behind which these begin,
--       5 life of a place in ms
-- reply a list: now, what the state is, a value, its ms left, how many hold, permits taken, permits, what the queue is, a sample
--       of it, how many wait there, how many places are closed, holds, open places, closed places
--   what   "" no key, "a" a string of ours (its value), "s" a set of ours (a member of it), "F" something else that starts with
--          the value, "T" of another type; of the queue "", "q", "F" or "T"
--   holds  a list of three each: ticket payload, its score, its token (16 digits)
--   open   of four each: ticket payload, its place, the end of its life in ms, "1" it is heard, "0" it is not, "" not known
--   closed of four each: ticket, its place, the end of its life in ms, payload; the last two empty if they were not found
-- The cost goes by what is told. Only holds of a semaphore that are over and not taken out yet are read as well.

--@untouched
--@include codes
--@include time
--@include common
--@include payload

local state, queue = KEYS[1], KEYS[2]
local format, hold_room, place_room, after, life = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local ms = math.floor(tonumber(now) / 1000)

-- ours tells whether a value or a member starts with a ticket of this format.
local function ours(text)
  return #text >= SHORTEST_LATCH and string.sub(text, 1, 1) == format and string.byte(text, COLON_AT) == COLON
end

-- The kind and value of the state.
local what, value, left, held, used, permits = '', '', 0, 0, 0, 0
local found = redis.pcall('GET', state)
if type(found) == 'string' then
  what, value = ours(found) and 'a' or 'F', found
  left = redis.call('PTTL', state)
elseif wrong(found) then
  found = redis.pcall('ZRANGE', state, '-1', '-1')
  if wrong(found) then
    what = 'T'
  else
    value = found[1] or redis.call('ZRANGE', state, '-1', '-1')[1] -- the latter: the server's own refusal
    what = ours(value) and 's' or 'F'
  end
elseif found then
  redis.call('GET', state) -- the server's own refusal
end
if what == 'F' then
  value = string.sub(value, 1, FRONT)
end

-- The kind of the queue. Where all places are closed, "c" is the last member.
local queue_is, sample, waiting, shut = '', '', 0, 0
found = redis.pcall('ZRANGE', queue, '-2', '-1')
if wrong(found) then
  queue_is = 'T'
elseif found.err then
  redis.call('ZRANGE', queue, '-2', '-1') -- the server's own refusal
elseif found[1] then
  sample = found[#found] == 'c' and found[1] or found[#found]
  queue_is = ours(sample) and 'q' or string.find(sample, EVICTED) and '' or 'F'
  sample = string.sub(sample, 1, FRONT)
end
if queue_is == 'q' then
  waiting = redis.call('ZCOUNT', queue, '1', '+inf')
  shut = redis.call('ZCOUNT', queue, '-inf', whole(-CLOSED))
end

-- The holds of a set, first those that exclude.
local holds = {}
local function tell(from, to)
  held = held + redis.call('ZCOUNT', state, from, to)
  local room = hold_room - #holds / 3
  if room <= 0 then
    return
  end
  local members = redis.call('ZRANGEBYSCORE', state, from, to, 'WITHSCORES', 'LIMIT', '0', whole(room))
  for at = 1, #members, 2 do
    table.insert(holds, members[at])
    table.insert(holds, whole(tonumber(members[at + 1])))
    table.insert(holds, string.format('%016.0f', -(redis.call('ZSCORE', state, 't' .. string.sub(members[at], 1, TICKET)) or 0)))
  end
end
if what == 's' then
  tell('(' .. whole(ms), whole(SHARED - 1))
  tell('(' .. whole(SHARED + ms), '+inf')
end

-- The permits of a semaphore. The queue knows them too, because holds may end by themselves.
if what == 's' and string.byte(value, KIND_AT) == KIND_SEMAPHORE then
  used = -(redis.call('ZSCORE', state, 'w') or 0)
  for _, over in ipairs(redis.call('ZRANGEBYSCORE', state, whole(SHARED), whole(SHARED + ms))) do
    used = used - (tonumber(string.match(over, '^%d+/(%d+)/', PAYLOAD_AT)) or 0)
  end
  permits = -(redis.call('ZSCORE', state, 'c') or 0)
end
if permits == 0 and queue_is == 'q' and string.byte(sample, KIND_AT) == KIND_SEMAPHORE then
  permits = -(redis.call('ZSCORE', queue, 'c') or 0)
end

-- listens tells whether any process hears a channel. Each channel is asked for once.
local heard = {}
local function listens(channel)
  local mark = string.byte(channel)
  if not mark or mark == MARK_CLUSTER then
    return ''
  end
  if not heard[channel] then
    local found = redis.pcall('PUBSUB', mark == MARK_SHARDED and 'SHARDNUMSUB' or 'NUMSUB', string.sub(channel, 2))
    heard[channel] = found.err and '' or found[2] > 0 and '1' or '0'
  end
  return heard[channel]
end

-- channel_of is the channel of a payload; empty if it is none.
local function channel_of(payload)
  local length, from = string.match(payload, '^%d+[%d/]*:%d+:%d+f?:(%d+):%d+:%d+:()')
  return length and string.sub(payload, from, from + length - 1) or ''
end

-- The open places. A place whose life is over is told as long as it is there.
local places = {}
if waiting > 0 and place_room > 0 then
  local members = redis.call('ZRANGEBYSCORE', queue, '(' .. whole(math.max(0, after)), '+inf', 'WITHSCORES', 'LIMIT', '0', whole(place_room))
  for at = 1, #members, 2 do
    local ticket, payload, place = string.sub(members[at], 1, TICKET), string.sub(members[at], PAYLOAD_AT), tonumber(members[at + 1])
    local keep = string.find(payload, '^%d+[%d/]*:%d+:%d+f?:%d+:%d+:[1-9]%d*:') and tonumber(extra(payload, 'keep'))
    local ends = redis.call('ZSCORE', queue, 'l' .. ticket)
    ends = ends and -ends or math.floor(place / 1000) + life
    table.insert(places, members[at])
    table.insert(places, whole(place))
    table.insert(places, whole(ends))
    table.insert(places, keep and ends - keep + life <= ms and '0' or listens(channel_of(payload)))
  end
end

-- The closed places: "n ticket" has the place, and so comes first in the set, the last place before
-- all. The member with the payload has the end of its life, among the lives of others.
local closed = {}
local behind = shut > 0 and place_room > 0 and redis.call('ZCOUNT', queue, '-inf', '(' .. whole(-CLOSED - after)) or 0
if behind > 0 then
  local lives, members = {}, redis.call('ZRANGEBYSCORE', queue, whole(1 - OUT), '-1', 'WITHSCORES', 'LIMIT', '0', '1000')
  for at = 1, #members, 2 do
    if string.byte(members[at], COLON_AT) == COLON then
      lives[string.sub(members[at], 1, TICKET)] = {whole(-members[at + 1]), string.sub(members[at], PAYLOAD_AT)}
    end
  end
  members = redis.call('ZRANGE', queue, whole(math.max(0, behind - place_room)), whole(behind - 1), 'WITHSCORES')
  for at = #members - 1, 1, -2 do
    local ticket = string.sub(members[at], 2)
    local found = lives[ticket] or {'', ''}
    table.insert(closed, ticket)
    table.insert(closed, whole(-CLOSED - members[at + 1]))
    table.insert(closed, found[1])
    table.insert(closed, found[2])
  end
end

return {now, what, value, whole(left), whole(held), whole(used), whole(permits), queue_is, sample, whole(waiting), whole(shut),
  holds, places, closed}
