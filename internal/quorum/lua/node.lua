-- node: tell what a node knows of itself, with the largest token of all buckets; and let it count, if asked to.
--
-- KEYS  1 facts of the node
-- ARGV  1 born: the birth that is to count, or "", 2 floor of its tokens from now on
-- reply "N" facts
-- A node that was born again since is not touched. Replays change nothing.

--@include state
--@include facts
local node = KEYS[1]
facts(node, 'none')
if ARGV[1] ~= '' and redis.call('HGET', node, 'born') == ARGV[1] then
  local floor = redis.call('HGET', node, 'counts')
  if not floor or floor < ARGV[2] then
    redis.call('HSET', node, 'counts', ARGV[2])
  end
end
local largest = NONE
local all = redis.call('HGETALL', node)
for i = 1, #all, 2 do
  if all[i] ~= 'born' and all[i + 1] > largest then
    largest = all[i + 1]
  end
end
local head = facts(node, 'none')
return 'N' .. head .. largest
