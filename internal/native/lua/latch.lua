-- latch: set a latch, count it down, look at it, or forget a watcher.
--
-- KEYS  1 state of the name, 2 ids that counted down lately, 3 watchers
-- ARGV  1 front of the kind, 2 what: "s" set, "d" count down, "l" look, 3 id of the request or of the watcher, 4 not after
--       (server us), 5 count, 6 TTL in ms, 7 channel of the watcher, 8 its life in ms,
--       9 server us after which no request with this id takes effect
-- reply now|standing|count|done    standing "u" unset, "s" set, "o" open; done 1: set or counted (by this id), 0: not
--       "L" and "F" as for ask
-- The state is the front, the id that set it, standing, count and TTL. Replays find their id and change nothing.

--@include codes
--@include time
--@untouched
if now > ARGV[4] then
  return 'L' .. now
end
local state, ids, watchers = KEYS[1], KEYS[2], KEYS[3]
local front, what, id = ARGV[1], ARGV[2], ARGV[3]
local value = redis.call('GET', state)
if value and string.sub(value, 1, FRONT) ~= front then
  return 'F' .. string.sub(value, 1, FRONT)
end
local setter, standing, count, ttl = '', 'u', 0, ARGV[6]
if value then
  setter = string.sub(value, ID_AT, TICKET)
  standing, count, ttl = string.match(value, '^(%a)(%d+):(%d+)$', PAYLOAD_AT)
  count = tonumber(count)
end

--@touched
--@include common
--@include publish
--@include messages

local function put()
  standing = count > 0 and 's' or 'o'
  redis.call('SET', state, front .. setter .. standing .. whole(count) .. ':' .. ttl, 'PX', ttl)
  --@noevict state
end

local done = 0
if what == 's' then
  if setter == id then
    done = 1
  elseif standing ~= 's' then
    setter, count, ttl = id, tonumber(ARGV[5]), ARGV[6]
    put()
    changed()
    done = 1
  end
elseif what == 'd' and value then
  -- An id is remembered for as long as a request with it may take effect, and a second more: what
  -- the client knows of this server's clock may be off by the time that an answer takes.
  redis.call('ZREMRANGEBYSCORE', ids, '0', whole(tonumber(now) - 1000000))
  if redis.call('ZADD', ids, 'NX', ARGV[9], id) == 1 and standing == 's' then
    count = count - 1
    put()
    if count == 0 then
      changed()
    end
  end
  local left = math.ceil((tonumber(ARGV[9]) - tonumber(now)) / 1000) + 1000
  redis.call('PEXPIRE', ids, whole(math.min(redis.call('PTTL', state), math.max(redis.call('PTTL', ids), left))))
  done = 1
elseif what == 'l' and id ~= '' then
  redis.call('HSET', watchers, id, ARGV[7])
  redis.call('PEXPIRE', watchers, ARGV[8])
end
return now .. '|' .. standing .. '|' .. whole(count) .. '|' .. done
