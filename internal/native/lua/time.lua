-- time: now is the server's time in microseconds, in 16 digits, so that times compare as text whatever the clock shows.

--@untouched
local time = redis.call('TIME')
local now = string.sub('000000000' .. time[1] .. string.sub('00000' .. time[2], -6), -16)
