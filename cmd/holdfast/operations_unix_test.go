//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// operationsToken stands for the token of the hold.
const operationsToken = "1795486865300377"

// A runbook is a server with a lock on it, and a shell in which the blocks of the page run.
type runbook struct {
	t       *testing.T
	server  *redisserver.Server
	dir     string // with redis-cli and holdfast
	environ []string
	holder  *holdfast.Client
	waiter  *holdfast.Client
	lease   *holdfast.Lease // of order:42
}

func newRunbook(t *testing.T, ttl time.Duration, options ...holdfast.Option) *runbook {
	t.Helper()
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		if cli, err = exec.LookPath("valkey-cli"); err != nil {
			t.Skip("no redis-cli: ", err)
		}
	}
	r := &runbook{t: t, server: redisserver.Start(t)}
	url := "redis://" + r.server.Addr()
	r.dir, r.environ = shellWith(t, url)
	script := fmt.Sprintf("#!/bin/sh\nexec %s -p %d \"$@\"\n", cli, r.server.Port())
	fatal.If(t, os.WriteFile(filepath.Join(r.dir, "redis-cli"), []byte(script), 0o700))
	config := holdfast.Config{TTL: ttl, ReleaseTimeout: time.Second, Label: "api@host1"}
	r.holder, r.waiter = newClient(t, url, config), newClient(t, url, config)
	r.lease, err = r.holder.Mutex("order:42", options...).Lock(t.Context())
	fatal.If(t, err)
	return r
}

func (r *runbook) run(block string) string {
	r.t.Helper()
	block = strings.ReplaceAll(block, operationsToken, strconv.FormatInt(r.lease.Token(), 10))
	return runShell(r.t, r.dir, r.environ, block)
}

// otherToken checks that a block does nothing to a hold with another token.
func (r *runbook) otherToken(block string) {
	r.t.Helper()
	if out := r.run(strings.Replace(block, operationsToken, "1", 1)); !strings.Contains(out, "no such hold") ||
		r.lease.Check(r.t.Context()) != nil {
		r.t.Fatalf("with another token: %s", out)
	}
}

// wait lets the second client wait in the queue. The channel gets the error of its Lock, or nil.
func (r *runbook) wait() <-chan error {
	r.t.Helper()
	entered := make(chan error, 1)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	r.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		lease, err := r.waiter.Mutex("order:42").Lock(ctx)
		entered <- err
		if lease != nil {
			_ = lease.Release()
		}
	}()
	until(r.t, "another waits", func() bool {
		n, _ := r.server.Do("ZCOUNT", "holdfast:{order:42}:queue", 1, "+inf")
		return n == int64(1)
	})
	return entered
}

// block is the only block of the page that contains a text.
func block(t *testing.T, text string) string {
	t.Helper()
	found := slices.DeleteFunc(fenced(t, "docs/operations.md", "sh"),
		func(b shellBlock) bool { return !strings.Contains(b.code, text) })
	if len(found) != 1 {
		t.Fatalf("%d blocks of the page contain %q", len(found), text)
	}
	return found[0].code
}

// operations are the blocks that are read, each by a text that only it contains, and what it prints
// of a lock that is held while another waits. The others have tests of their own.
var operations = map[string][]string{
	"holdfast inspect order:42": {"order:42", "held", "api@host1"},
	"holdfast shards orders":    {`nobody takes part in "orders"`},
	"redis-cli TYPE":            {"string\n", "\n1\n"},
	"redis-cli GET 'holdfast": {"3mx:", operationsToken + "500:1:60000:",
		"/" + strconv.Itoa(os.Getpid()) + "/", "api@host1"},
	"ZRANGE 'holdfast:{order:42}' 0 -1 WITHSCORES": {"3mx:"},
	"--scan --pattern": {"holdfast:{order:42}\n"},
	"master_replid": {"uptime_in_seconds:", "run_id:", "role:master",
		"second_repl_offset:-1", "evicted_keys:0", "aof_enabled:0", "noeviction"},
	"SLOWLOG": {"cmdstat_evalsha:", "instantaneous_ops_per_sec:",
		"connected_clients:"},
	"used_memory_human": {"used_memory_human:", "maxmemory_policy:noeviction",
		"evicted_keys:0"},
	"--bigkeys":               {"OK\nOK\n", "order:42"},
	"(loading|aof_enabled):'": {"loading:0", "aof_enabled:0"},
}

func TestOperationsLook(t *testing.T) {
	r := newRunbook(t, time.Minute)
	r.wait()
	for text, want := range operations {
		said := block(t, text)
		if text == "ZRANGE 'holdfast:{order:42}' 0 -1 WITHSCORES" { // the state is a string here
			said = strings.SplitAfter(said, "\n")[1]
		}
		out := r.run(said)
		for _, part := range want {
			part = strings.ReplaceAll(part, operationsToken, strconv.FormatInt(r.lease.Token(), 10))
			if !strings.Contains(out, part) {
				t.Errorf("%q prints no %q:\n%s", text, part, out)
			}
		}
	}
}

// Each block with redis-cli or holdfast is run by a test.
func TestOperationsAreAllRun(t *testing.T) {
	own := []string{"local head, channel", "or not the only one", "--token 1795486865300377\n", "--force",
		"appendfsync always", "SHUTDOWN"}
	for _, b := range fenced(t, "docs/operations.md", "sh") {
		n := 0
		for _, text := range append(slices.Collect(maps.Keys(operations)), own...) {
			if strings.Contains(b.code, text) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d tests for the block\n%s", n, b.code)
		}
	}
}

// Trap 5: the holder is told. Unless by force, nobody else gets in before the holder has stopped.
// The commands do what the scripts do.
func TestOperationsBreak(t *testing.T) {
	long(t)
	owned := []holdfast.Option{holdfast.WithOwner("alice")} // the state is a set then, and no string
	for name, test := range map[string]struct {
		block   string
		options []holdfast.Option
		prints  string
		script  bool
		force   bool
	}{
		"string":           {"local head, channel", nil, "broken: it ends in", true, false},
		"set":              {"local head, channel", owned, "broken: it ends in", true, false},
		"command":          {"--token 1795486865300377\n", nil, "", false, false},
		"string, by force": {"or not the only one", nil, `^1\n$`, true, true},
		"set, by force":    {"or not the only one", owned, `^1\n$`, true, true},
		"command of force": {"--force", nil, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunbook(t, 15*time.Second, test.options...)
			said := block(t, test.block)
			if test.script {
				r.otherToken(said)
			}
			entered := r.wait()
			if out := r.run(said); !regexp.MustCompile(test.prints).MatchString(out) {
				t.Fatal(out)
			}
			if test.script && !test.force {
				if out := r.run(said); !strings.Contains(out, "no such hold") {
					t.Errorf("again: %s", out)
				}
				info, err := r.waiter.Inspect(t.Context(), "order:42")
				if err != nil || len(info.Holds) != 1 || info.Holds[0].State != lockinfo.StateBroken ||
					info.Holds[0].By != "alice with redis-cli" {
					t.Errorf("inspected: %+v, %v", info.Holds, err)
				}
			}
			<-r.lease.Done()
			var lost *holdfast.LostError
			if err := r.lease.Err(); !errors.As(err, &lost) || !test.force && lost.Reason != holdfast.LossBroken ||
				test.script && !test.force && lost.By != "alice with redis-cli" {
				t.Errorf("the holder is told %v", err)
			}
			if !test.force {
				select {
				case err := <-entered:
					t.Errorf("another got in before the holder had stopped: %v", err)
					return
				default:
				}
				_ = r.lease.Release()
			}
			fatal.If(t, <-entered)
		})
	}
}

// A hold that shares is left alone.
func TestOperationsBreakReader(t *testing.T) {
	r := newRunbook(t, time.Minute)
	_ = r.lease.Release()
	reader, err := r.holder.RWMutex("order:42").RLock(t.Context())
	fatal.If(t, err)
	r.lease = reader
	if out := r.run(block(t, "local head, channel")); !strings.Contains(out, "no such hold") ||
		reader.Check(t.Context()) != nil {
		t.Error(out)
	}
}

// Trap 44: a server that was given an append-only file keeps its locks.
func TestOperationsRestart(t *testing.T) {
	long(t)
	r := newRunbook(t, time.Minute)
	out := r.run(block(t, "appendfsync always"))
	for _, line := range []string{"aof_enabled:1", "aof_last_bgrewrite_status:ok", "aof_last_write_status:ok"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %s in %s", line, out)
		}
	}
	r.run(block(t, "SHUTDOWN"))
	if _, err := r.server.Do("PING"); err == nil {
		t.Error("the server still answers")
	}
	again := redisserver.Start(t, "--dir", r.server.Dir(), "--appendonly", "yes")
	if value, err := again.Do("GET", "holdfast:{order:42}"); err != nil ||
		!strings.Contains(fmt.Sprint(value), strconv.FormatInt(r.lease.Token(), 10)) {
		t.Errorf("after the restart: %v, %v", value, err)
	}
}
