package redisserver_test

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestRunRefuses(t *testing.T) {
	if srv, err := redisserver.Run(t.Context(), "--no-such-option", "1"); err == nil {
		_ = srv.Close()
		t.Error("it started with a bad option")
	}
	t.Setenv("REDIS_SERVER", "no-such-server")
	if _, err := redisserver.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "make test installs it") {
		t.Errorf("got %v", err)
	}
}
