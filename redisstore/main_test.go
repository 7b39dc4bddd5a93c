package redisstore_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // go-redis logs every connection that fails, and here many do
	os.Exit(leak.Main(m))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func request(args ...any) []holdfast.Request { return []holdfast.Request{{Args: args}} }
