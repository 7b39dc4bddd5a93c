package fence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// onRedis runs a test on a real server and on the embedded one.
func onRedis(t *testing.T, test func(*testing.T, *redis.Client)) {
	for name, start := range map[string]func(*testing.T) string{
		"redis-server": func(t *testing.T) string { return redisserver.Start(t).Addr() },
		"miniredis":    func(t *testing.T) string { return miniredis.RunT(t).Addr() },
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redis.NewClient(&redis.Options{Addr: start(t)})
			defer rdb.Close()
			test(t, rdb)
		})
	}
}

// fenced runs one command under the lock order:42, on a key of its slot.
func fenced(ctx context.Context, rdb redis.Scripter, token int64, key, command string, args ...any) (any, error) {
	keys := []string{"{order:42}:fence", "{order:42}" + key}
	reply, err := redis.NewScript(fence.RedisScript).Run(ctx, rdb, keys,
		append([]any{token, command}, args...)...).Result()
	return reply, fence.RedisError(err, "order:42", token)
}

func TestRedisScriptRefusesSmallerTokensAlone(t *testing.T) {
	onRedis(t, func(t *testing.T, rdb *redis.Client) {
		written := -1
		for i, test := range sentTokens {
			reply, err := fenced(t.Context(), rdb, test.token, "", "SET", i)
			checkOutcome(t, test.what, err, test.token, test.largest)
			if err == nil {
				written = i
			}
			if got, _ := rdb.Get(t.Context(), "{order:42}").Int(); got != written || err == nil && reply != "OK" {
				t.Errorf("%s: wrote %d, want %d: %v", test.what, got, written, reply)
			}
		}
		if ttl := rdb.PTTL(t.Context(), "{order:42}:fence").Val(); ttl >= 0 {
			t.Errorf("the fence expires in %v", ttl)
		}
	})
}

// The reply and the error of the command are the script's. A late holder reads nothing either, and
// a key that the new holder has not touched is guarded as well.
func TestRedisScriptRunsAnyCommand(t *testing.T) {
	onRedis(t, func(t *testing.T, rdb *redis.Client) {
		for _, test := range []struct {
			command string
			args    []any
			reply   any
		}{
			{"HSET", []any{"state", "billed", "by", "host 1"}, int64(2)},
			{"HGET", []any{"state"}, "billed"},
			{"HDEL", []any{"state"}, int64(1)},
			{"EXISTS", nil, int64(1)},
			{"HGET", []any{"state"}, nil},
		} {
			reply, err := fenced(t.Context(), rdb, 17, ":lines", test.command, test.args...)
			if errors.Is(err, redis.Nil) && test.reply == nil {
				continue
			}
			if reply != test.reply || err != nil {
				t.Errorf("%s: %v, %v, want %v", test.command, reply, err, test.reply)
			}
		}
		if _, err := fenced(t.Context(), rdb, 18, ":lines", "INCR"); err == nil || errors.Is(err, fence.ErrLate) ||
			!strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("a command that fails: %v", err)
		}
		for _, command := range []string{"HGETALL", "DEL"} {
			if _, err := fenced(t.Context(), rdb, 17, ":lines", command); !errors.Is(err, fence.ErrLate) {
				t.Errorf("the failed command of 18 did not raise the fence: %s: %v", command, err)
			}
		}
		if _, err := fenced(t.Context(), rdb, 17, ":other", "SET", "late"); !errors.Is(err, fence.ErrLate) {
			t.Errorf("a key that the new holder has not touched: %v", err)
		}
	})
}

// What is no token of a lease is refused, as fence.SQL refuses it: to Lua some of it is larger than
// all tokens, or neither smaller nor larger. A fence with such a value lets nobody write.
func TestRedisScriptRefusesWhatIsNoToken(t *testing.T) {
	onRedis(t, func(t *testing.T, rdb *redis.Client) {
		const guard, data = "{order:42}:fence", "{order:42}"
		write := func(token any) error {
			return redis.NewScript(fence.RedisScript).Run(t.Context(), rdb, []string{guard, data}, token, "SET",
				"written").Err()
		}
		refused := func(token any, fenced string) {
			t.Helper()
			if err := write(token); err == nil || errors.Is(fence.RedisError(err, "order:42", 1), fence.ErrLate) ||
				!strings.Contains(err.Error(), "2^53-1") {
				t.Errorf("token %v at a fence of %q: %v", token, fenced, err)
			}
			if got := rdb.MGet(t.Context(), guard, data).Val(); fmt.Sprint(got[0]) != fenced || got[1] != nil {
				t.Errorf("token %v wrote, and the fence of %q is %v", token, fenced, got[0])
			}
		}
		rdb.Set(t.Context(), guard, 17, 0)
		wrong := []string{"nan", "NaN", "-nan", "inf", "-inf", "", "x", "0", "-1", "+18", "18.5", "18.0", "1e3", "0x18",
			"018", " 18", "18 ", "18\n", "18\x00",
			"9007199254740992", "99999999999999999999", strings.Repeat("9", 400)}
		for _, token := range wrong {
			refused(token, "17")
		}
		for _, value := range append(wrong, "something else") {
			rdb.Set(t.Context(), guard, value, 0)
			refused(18, value)
		}
		rdb.Del(t.Context(), guard)
		if err := write("9007199254740991"); err != nil {
			t.Error(err)
		}
	})
}
