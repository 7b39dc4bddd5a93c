-- letters: the bytes of a ticket and of a channel that scripts look at, as the package document says.
-- Byte 2 of a ticket is its kind, byte 3 its mode, byte 4 a colon; byte 1 of a channel is its mark.

local KIND_ELECTION, KIND_SEMAPHORE, COLON = 101, 115, 58 -- e s :
local MODE_EXCLUSIVE, MODE_ELECTION, MODE_OWNER, MODE_SHARED, MODE_REMAINDER = 120, 119, 111, 115, 45 -- x w o s -
local EVICTED = '^e%d.[xwos]:' -- how a marker of the queue starts: a ticket was evicted
local MARK_PLAIN, MARK_CLUSTER, MARK_SHARDED = 112, 99, 115 -- p c s
