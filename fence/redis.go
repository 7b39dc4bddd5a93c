package fence

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// RedisScript runs one command on one key, unless its token is late:
//
//	EVAL RedisScript 2 FENCE KEY TOKEN COMMAND ARGUMENT...
//
// FENCE is the key with the largest token, and lies in the slot of KEY, as "{order:42}:fence" and
// "{order:42}" do. It never expires. The script runs COMMAND KEY ARGUMENT... in the same step, and
// returns its reply. A reading command raises the fence too, and comes before all that depends on
// what it reads. If the token is late, the command does not run, and [RedisError] tells. It does
// not run either if TOKEN, or what FENCE has, is no number from 1 to 2^53-1, as the tokens of
// leases are.
//
// Locks and data may lie on one server or on two. A fail-over to a replica that lags behind takes
// both the fence and the data back.
const RedisScript = `local function token(text)
  local number = string.match(text, '^[1-9]%d*$') and tonumber(text)
  return number and number < 9007199254740992 and number
end
local mine, fence = token(ARGV[1]), redis.call('GET', KEYS[1])
local largest = fence and token(fence) or not fence and 0
if not mine or not largest then
  return redis.error_reply('ERR a token is from 1 to 2^53-1: ' .. (mine and 'the fence has none' or 'this is none'))
end
if mine < largest then
  return redis.error_reply(string.format('LATE %.0f', largest))
end
redis.call('SET', KEYS[1], ARGV[1])
return redis.call(ARGV[2], KEYS[2], unpack(ARGV, 3))
`

// RedisError returns a *[LateError] if err is how a client library reports that [RedisScript]
// refused the token. It returns other errors, and nil, as they are.
func RedisError(err error, name string, token int64) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		text, late := strings.CutPrefix(e.Error(), "LATE ")
		if !late {
			continue
		}
		number, _, _ := strings.Cut(text, " ")
		if largest, bad := strconv.ParseInt(number, 10, 64); bad == nil {
			return &LateError{Name: name, Token: token, Largest: largest}
		}
		return fmt.Errorf("fence: the script's answer has no token: %w", err)
	}
	return err
}
