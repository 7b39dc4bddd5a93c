-- publish: messages to clients. Each is in the package document. Include codes comes before it.

-- publish tells a channel. Its mark says how: "p" plain, "c" plain in a cluster, "s" sharded.
local function publish(channel, message)
  redis.pcall(string.byte(channel) == MARK_SHARDED and 'SPUBLISH' or 'PUBLISH', string.sub(channel, 2), message)
end
