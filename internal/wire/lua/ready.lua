-- ready: refuse what the server refuses to a script that writes, and change nothing.
--
-- KEYS  1 a key that never exists
-- reply "ready"
-- XX leaves a key alone that does not exist. A replica, a server without memory and one that cannot persist refuse it all the same.

--@untouched
local probe = KEYS[1]
redis.call('ZADD', probe, 'XX', 0, '')
return 'ready'
