package security_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/permissions"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// grant makes a user of a server with permission for the keys that begin with a prefix, and for the
// commands.
func grant(t *testing.T, srv *redisserver.Server, user, prefix string, commands ...string) func(*redis.Options) {
	t.Helper()
	permissions.Realm{Servers: []func(...any) (any, error){srv.Do}}.Grant(t, user, prefix, commands...)
	return func(o *redis.Options) { o.Username, o.Password = user, "pw" }
}
