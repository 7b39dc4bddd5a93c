-- evicted: the markers of tickets that were evicted. It expects holds.

-- sweep takes out markers whose time is over.
local function sweep()
  local over = redis.call('ZRANGEBYSCORE', queue, whole(-OUT - ms), whole(-OUT), 'LIMIT', '0', '64')
  if over[1] then
    redis.call('ZREM', queue, unpack(over))
  end
end

-- evicted is the label of the caller that evicted a ticket, and the marker that has it; nil of all
-- other tickets. Both markers have one score.
local function evicted(ticket)
  local marker, ends = 'e' .. ticket .. ':', redis.call('ZSCORE', queue, 'e' .. ticket)
  for _, member in ipairs(ends and -ends - OUT > ms and redis.call('ZRANGEBYSCORE', queue, ends, ends) or {}) do
    if string.sub(member, 1, #marker) == marker then
      return string.sub(member, #marker + 1), member
    end
  end
end

-- readmit takes the markers of a ticket out.
local function readmit(ticket)
  local by, marker = evicted(ticket)
  if by then
    redis.call('ZREM', queue, 'e' .. ticket, marker)
  end
end
