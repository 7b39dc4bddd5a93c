package redisserver_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// needProof skips what kills or stops a server.
func needProof(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("it kills or stops a server: only with HOLDFAST_PROOF=1")
	}
}

func TestServerLivesThroughItsLife(t *testing.T) {
	needProof(t)
	srv := redisserver.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	if _, err := srv.Do("SET", "k", 7); err != nil {
		t.Fatal(err)
	}
	addr, pid := srv.Addr(), srv.Pid()
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	if srv.Addr() != addr || srv.Pid() == pid {
		t.Fatalf("address %s then %s, pid %d then %d", addr, srv.Addr(), pid, srv.Pid())
	}
	if v, err := srv.Do("GET", "k"); v != "7" || err != nil {
		t.Fatalf("after the restart k = %v, %v", v, err)
	}
	srv.Kill()
	if _, err := srv.Do("PING"); err == nil || srv.Pid() != 0 {
		t.Fatalf("a killed server answers, pid %d", srv.Pid())
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
}

func TestAnswers(t *testing.T) {
	srv := redisserver.Start(t)
	v, err := srv.Do("EVAL", "return {1,'two',false,{ARGV[1]}}", 0, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	list := v.([]any)
	if list[0] != int64(1) || list[1] != "two" || list[2] != nil || list[3].([]any)[0] != "x" {
		t.Fatalf("got %#v", list)
	}
	if _, err := srv.Do("NOPE"); err == nil || !strings.HasPrefix(err.Error(), "ERR unknown command") {
		t.Fatalf("got %v", err)
	}
}

func TestCommandsAreCounted(t *testing.T) {
	srv := redisserver.Start(t)
	before := srv.CommandsProcessed()
	for range 3 {
		if _, err := srv.Do("INCR", "n"); err != nil {
			t.Fatal(err)
		}
	}
	if after := srv.CommandsProcessed(); after-before != 4 { // three INCR and one INFO
		t.Fatalf("%d commands", after-before)
	}
	if n := srv.CommandStats()["incr"]; n != 3 {
		t.Fatalf("%d INCR", n)
	}
}

func TestRunRefuses(t *testing.T) {
	for name, opts := range map[string][]string{"a bad option": {"--no-such-option", "1"}} {
		t.Run(name, func(t *testing.T) {
			if srv, err := redisserver.Run(context.Background(), opts...); err == nil {
				_ = srv.Close()
				t.Fatal("it started")
			}
		})
	}
	t.Run("not installed", func(t *testing.T) {
		t.Setenv("REDIS_SERVER", "no-such-server")
		_, err := redisserver.Run(context.Background())
		if err == nil || !strings.Contains(err.Error(), "make test installs it") {
			t.Fatalf("got %v", err)
		}
	})
}
