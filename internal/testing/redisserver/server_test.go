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
	before := srv.CommandsProcessed()
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
	if after := srv.CommandsProcessed(); after-before != 2 { // EVAL and one INFO
		t.Errorf("%d commands", after-before)
	}
	if n := srv.CommandStats()["eval"]; n != 1 {
		t.Errorf("%d EVAL", n)
	}
}

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
