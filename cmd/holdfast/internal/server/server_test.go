package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/redis/go-redis/v9"
)

// The argument and the variable that make the test binary a keeper, or a server that fails.
const (
	asKeeper = "keeper"
	asBroken = "HOLDFAST_TEST_BROKEN_SERVER"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == asKeeper:
		_ = Keep(os.Stdin, os.Args[2], os.Args[3:]...)
	case os.Getenv(asBroken) != "":
		fmt.Println("no room on this disk")
		os.Exit(1)
	default:
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each process ends a second later under -race
		os.Exit(leak.Main(m))
	}
}

func keeperCommand(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	fatal.If(t, err)
	return []string{self, asKeeper}
}

func connect(t *testing.T, s *Server) *redis.Client {
	t.Helper()
	options, err := ParseURL(s.URL)
	fatal.If(t, err)
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// runID differs between servers at one address. It is empty without a server.
func runID(t *testing.T, s *Server) string {
	info, _ := connect(t, s).Info(t.Context(), "server").Result()
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			return strings.TrimSpace(id)
		}
	}
	return ""
}

// The clock of an embedded server runs: a key expires, and not before its time.
func TestEmbeddedClockRuns(t *testing.T) {
	s, err := Embed()
	fatal.If(t, err)
	defer s.Stop()
	rdb := connect(t, s)
	const ttl = 100 * time.Millisecond
	sent := time.Now()
	fatal.If(t, rdb.Set(t.Context(), "key", "value", ttl).Err())
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		_, err := rdb.Get(t.Context(), "key").Result()
		lived := time.Since(sent)
		if errors.Is(err, redis.Nil) {
			if lived < ttl {
				t.Errorf("lived %v, want %v", lived, ttl)
			}
			return
		}
		if err != nil || lived > time.Minute {
			t.Fatalf("still there after %v, %v", lived, err)
		}
		<-tick.C
	}
}

func TestStartAndStop(t *testing.T) {
	long(t)
	path, ok := Find()
	if !ok {
		t.Skip("no redis-server on the PATH")
	}
	s, err := Start(t.Context(), path, keeperCommand(t))
	fatal.If(t, err)
	id := runID(t, s)
	if id == "" {
		t.Error("no run id")
	}
	if name, _, ok := strings.Cut(s.Name, " "); !ok || name != "Redis" && name != "Valkey" {
		t.Errorf("name %q", s.Name)
	}
	for range 2 {
		fatal.If(t, s.Stop())
	}
	if runID(t, s) == id { // another process may have the port by now
		t.Error("still there")
	}
}

func TestStartFails(t *testing.T) {
	t.Run("no such program", func(t *testing.T) {
		if s, err := Start(t.Context(), "no-such-program", keeperCommand(t)); err == nil {
			t.Errorf("started %+v", s)
		}
	})
	t.Run("port in use", func(t *testing.T) {
		path, ok := Find()
		if !ok {
			t.Skip("no redis-server on the PATH")
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		fatal.If(t, err)
		defer l.Close()
		if _, err := startOn(t.Context(), path, keeperCommand(t), l.Addr().(*net.TCPAddr).Port); !errors.Is(err,
			errBusy) {
			t.Errorf("error %v, want %v", err, errBusy)
		}
	})
	t.Run("says why", func(t *testing.T) {
		long(t)
		keep := keeperCommand(t)
		t.Setenv(asBroken, "1")
		_, err := Start(t.Context(), keep[0], keep)
		if err == nil || !strings.Contains(err.Error(), "no room on this disk") {
			t.Errorf("error %v", err)
		}
	})
}

func TestProduct(t *testing.T) {
	for info, want := range map[string]string{
		"# Server\r\nredis_version:7.0.15\r\nos:Linux\r\n":                              "Redis 7.0.15",
		"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0": "Valkey 9.0.0",
		"": "a server without a version",
	} {
		if got := product(info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// long skips a test that starts and kills a server: make proof runs it.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("long: only with HOLDFAST_PROOF=1")
	}
}
