-- codes: the bytes, places and scores that the package document describes, by name.

-- A ticket: its format and kind are its stamp, then its mode, a colon and its id. In a string that
-- holds, token and payload follow; in a member of a set, the payload alone.
local STAMP, FRONT, TICKET, TOKEN = 2, 4, 26, 42 -- the last byte of each; of the front the colon
local KIND_AT, MODE_AT, COLON_AT, ID_AT = 2, 3, 4, 5
local TOKEN_AT, REST_AT = 27, 43 -- in a string that holds
local PAYLOAD_AT = 27 -- in a member of a set
local SHORTEST, SHORTEST_LATCH = 34, 29 -- how long what is ours is at least: ticket and payload; a latch
local KIND_ELECTION, KIND_SEMAPHORE, COLON = 101, 115, 58 -- e s :
local MODE_EXCLUSIVE, MODE_ELECTION, MODE_OWNER, MODE_SHARED, MODE_REMAINDER = 120, 119, 111, 115, 45 -- x w o s -
local HEARS = 'hears:1:' -- how the extra starts of a hold whose process is told of others that ask
local EVICTED = '^e%d.[xwos]:' -- how a marker of the queue starts: a ticket was evicted

-- How to publish on a channel, by its first byte.
local MARK_PLAIN, MARK_CLUSTER, MARK_SHARDED = 112, 99, 115 -- p c s

-- Messages.
local GRANTED, ASK, BROKEN, RECALL = '3G', '3N', '3R', '3W'

-- Scores. The score of a hold that shares is its end and SHARED. In the queue, open places are from
-- PLACES on. Negative are the ends of lives, those of evicted tickets from OUT on, and closed
-- places from CLOSED on.
local SHARED, PLACES = 10000000000000, '1'
local CLOSED, OUT = 1000000000000000, 500000000000000
