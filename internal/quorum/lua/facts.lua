-- facts: what a node knows of itself, in one hash, lost or kept as a whole:
--   born -> server us of its first use   counts -> the floor of its tokens, once it counts   a bucket -> its largest token
-- Every reply that was decided begins with its status (1), now (16), born (16), counts ("1" or "0") and the largest token of
-- the bucket (16).

local function facts(node, bucket)
  local known = redis.call('HMGET', node, 'born', 'counts', bucket)
  local born, floor, last = known[1], known[2], known[3] or NONE
  if not born then
    born = now
    redis.call('HSET', node, 'born', born)
  end
  if floor and floor > last then
    last = floor
  end
  return now .. born .. (floor and '1' or '0'), last
end
