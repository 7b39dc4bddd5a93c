package traps_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A logbook is what a logger wrote.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Trap 42: a server that drops locks when its memory is full. The logger hears of it once; a server
// that may not be asked, or has no limit, is used without a word.
func TestServerEvictionIsTold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options []string
		told    int
	}{
		"volatile-lru": {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"}, 1},
		"allkeys-lfu":  {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lfu"}, 1},
		"noeviction":   {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "noeviction"}, 0},
		"no limit":     {[]string{"--maxmemory-policy", "allkeys-lru"}, 0},
		"not allowed":  {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redisserver.Start(t, test.options...)
			if name == "not allowed" {
				harness.Must(t, srv, "ACL", "SETUSER", "default", "-info")
			}
			var heard logbook
			c := harness.Locker(t, srv.Addr(), &holdfast.Config{Logger: slog.New(slog.NewTextHandler(&heard, nil))})
			for range 3 {
				harness.Release(t, harness.Lock(t, c.Mutex("n")))
			}
			if err := c.Close(); err != nil { // the log is written in the background until then
				t.Error(err)
			}
			if n := strings.Count(heard.String(), "maxmemory-policy"); n != test.told {
				t.Errorf("told %d times, want %d: %s", n, test.told, heard.String())
			}
		})
	}
}
