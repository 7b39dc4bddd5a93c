-- node: tell what a node knows of itself, with the largest token of all buckets; and let it count, if asked to.
--
-- KEYS  1 facts of the node
-- ARGV  1 born: the birth that is to count, or "", 2 floor of its tokens from now on, 3 "s" when it did not know a script, "a" when
--       the birth is to count no more, as the clock was set forward since, or "", 4 ms of the longest TTL that the client may ask
--       for, 5 what the server is to be known by, if it does not tell its run id: a random text
-- reply "N" facts longest: the longest TTL that any client may ask for, as far as the node was told
-- A server that did not know this script may have been started since it was last asked. What it then read from a snapshot is
-- older than its memory was, so its memory begins anew, unless it writes every change down (an append-only file). The run
-- id tells a start from a flush of the scripts; where it may not be read, any flush is taken for a start. It also tells the
-- server from all others, as the random text does: nodes that are known by the same are one server.
-- A node that was born again since is not let count. Replays change nothing.

--@include state
--@include facts
local node = KEYS[1]
local function begin() -- its memory, anew
  redis.call('HDEL', node, 'counts')
  redis.call('HSET', node, 'born', now)
end
facts(node, 'none')
local last = redis.call('HGET', node, 'run')
if ARGV[3] == 's' or not last then
  local info = redis.pcall('INFO', 'server')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
  if ARGV[3] == 's' and (run == '' or last ~= run) then
    local kept = redis.pcall('INFO', 'persistence')
    if not (last and type(kept) == 'string' and string.find(kept, 'aof_enabled:1', 1, true)) then
      begin()
    end
    last = nil
  end
  if not last then
    redis.call('HSET', node, 'run', run ~= '' and run or ARGV[5])
  end
end
local meant = redis.call('HGET', node, 'born') == ARGV[1]
if meant and ARGV[3] == 'a' then
  begin()
elseif meant then
  local floor = redis.call('HGET', node, 'counts')
  if not floor or floor < ARGV[2] then
    redis.call('HSET', node, 'counts', ARGV[2])
  end
end
local largest = NONE
local all = redis.call('HGETALL', node)
for i = 1, #all, 2 do
  if tonumber(all[i]) and all[i + 1] > largest then
    largest = all[i + 1]
  end
end
-- Buckets are numbers; the floor is not, and counts as well.
local floor = redis.call('HGET', node, 'counts')
if floor and floor > largest then
  largest = floor
end
local head = facts(node, 'none', ARGV[4])
local longest = tonumber(redis.call('HGET', node, 'longest'))
return 'N' .. head .. largest .. string.format('%.0f', longest)
