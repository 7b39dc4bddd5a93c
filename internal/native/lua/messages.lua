-- messages: what clients are told. Each message is in the package document. Include publish comes
-- before it, and a local watchers, the key of those that are told of changes.

-- listens tells whether anybody hears a channel; nil where the server cannot tell. It is asked
-- before a message goes out, never read from the count of PUBLISH: a grant that was sent cannot be
-- taken back. In a cluster the count is that of one node and says nothing.
local function listens(channel)
  local mark = string.byte(channel)
  if mark == MARK_CLUSTER then
    return nil
  end
  local heard = redis.pcall('PUBSUB', mark == MARK_SHARDED and 'SHARDNUMSUB' or 'NUMSUB', string.sub(channel, 2))
  if heard.err then
    return nil
  end
  return heard[2] > 0
end

-- changed tells all watchers, once.
local function changed()
  local all = redis.call('HGETALL', watchers)
  for at = 1, #all, 2 do
    publish(all[at + 1], ASK .. all[at] .. '0')
  end
  redis.call('DEL', watchers)
end
