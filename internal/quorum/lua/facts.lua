-- facts: what a node knows of itself, in one hash, lost or kept as a whole:
--   born -> server us of its first use   counts -> the floor of its tokens, once it counts   a bucket -> its largest token
--   longest -> ms of the longest TTL that any client may ask for, as far as it was told
--   run -> what the server is known by (node.lua)
-- Every reply that was decided begins with its status (1), now (16), born (16), the beginning of run (16), counts ("1" or "0")
-- and the largest token of the bucket (16).

local function facts(node, bucket, longest)
  local known = redis.call('HMGET', node, 'born', 'counts', bucket, 'longest', 'run')
  local born, floor, last = known[1], known[2], known[3] or NONE
  if not born or not floor and born > now then -- or its clock was set back since
    born = now
    redis.call('HSET', node, 'born', born)
  end
  if longest and tonumber(longest) > (tonumber(known[4]) or 0) then
    redis.call('HSET', node, 'longest', longest)
  end
  if floor and floor > last then
    last = floor
  end
  return now .. born .. named(known[5]) .. (floor and '1' or '0'), last
end
