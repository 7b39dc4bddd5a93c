package redisstore_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// A server that refuses the greeting of a new connection refuses every command of a flush. go-redis
// returns that error, and leaves the commands of a pipeline without one.
func TestRefusedGreetingIsTheReplyToEachCommand(t *testing.T) {
	rdb := client(t, redisserver.Start(t), func(o *redis.Options) { o.Username, o.Password = "nobody", "guess" })
	for _, commands := range [][]store.Command{{{"GET", "x"}}, {{"GET", "x"}, {"GET", "y"}}} {
		for i, reply := range redisstore.New(rdb).Do(within(t, patience), "", commands) {
			if !strings.HasPrefix(reply.Refused, "WRONGPASS") {
				t.Errorf("reply %d of %d: %+v", i+1, len(commands), reply)
			}
		}
	}
}
