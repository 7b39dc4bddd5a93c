//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/redisstore"
)

const (
	operationsPage  = "../../docs/operations.md"
	operationsToken = "1795486865300377" // stands for the token of the hold
)

// A runbook is a server with a lock on it, and a shell in which the blocks of the page run.
type runbook struct {
	t      *testing.T
	server *redisserver.Server
	dir    string // with redis-cli and holdfast
	holder *holdfast.Client
	waiter *holdfast.Client
	lease  *holdfast.Lease // of order:42
	ttl    time.Duration

	renewed renewals
}

// renewals receive each renewal.
type renewals chan struct{}

// Observe implements holdfast.Observer.
func (r renewals) Observe(e holdfast.Event) {
	if e.Kind == holdfast.EventRenewed {
		select {
		case r <- struct{}{}:
		default:
		}
	}
}

func newRunbook(t *testing.T, ttl time.Duration, options ...holdfast.Option) *runbook {
	t.Helper()
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		if cli, err = exec.LookPath("valkey-cli"); err != nil {
			t.Skip("no redis-cli: ", err)
		}
	}
	r := &runbook{t: t, server: redisserver.Start(t), dir: t.TempDir(), ttl: ttl, renewed: make(renewals, 1)}
	script := fmt.Sprintf("#!/bin/sh\nexec %s -p %d \"$@\"\n", cli, r.server.Port())
	if err := os.WriteFile(filepath.Join(r.dir, "redis-cli"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	linkProgram(t, r.dir)
	r.holder, r.waiter = r.client(), r.client()
	r.lease, err = r.holder.Mutex("order:42", options...).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *runbook) client() *holdfast.Client {
	r.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.server.Addr(), DialerRetries: 1})
	client, err := holdfast.New(redisstore.New(rdb),
		&holdfast.Config{TTL: r.ttl, ReleaseTimeout: time.Second, Observer: r.renewed, Label: "api@host1"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = client.Close()
		_ = rdb.Close()
	})
	return client
}

// run runs a block, and returns what it prints.
func (r *runbook) run(block string) string {
	r.t.Helper()
	block = strings.ReplaceAll(block, operationsToken, strconv.FormatInt(r.lease.Token(), 10))
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-e", "-c", block)
	sh.Env = append(os.Environ(), "PATH="+r.dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		"REDIS_URL=redis://"+r.server.Addr())
	out, err := sh.CombinedOutput()
	if err != nil {
		r.t.Errorf("%v: %s\n%s", err, block, out)
	}
	return string(out)
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
	for n := any(nil); n != int64(1); {
		n, _ = r.server.Do("ZCOUNT", "holdfast:{order:42}:queue", 1, "+inf")
		if r.t.Context().Err() != nil {
			r.t.Fatal("nobody waits")
		}
	}
	return entered
}

// blocks are the blocks of shell on the page, in order.
func blocks(t *testing.T) (all []string) {
	t.Helper()
	page, err := os.ReadFile(operationsPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		all = append(all, block[1])
	}
	return all
}

// block is the only block that contains a text.
func block(t *testing.T, text string) string {
	t.Helper()
	found := slices.DeleteFunc(blocks(t), func(b string) bool { return !strings.Contains(b, text) })
	if len(found) != 1 {
		t.Fatalf("%d blocks of the page contain %q", len(found), text)
	}
	return found[0]
}

// operations are the blocks that are read, each by a text that only it contains, and what it prints
// of a lock that is held while another waits. The others have tests of their own.
var operations = map[string][]string{
	"holdfast inspect order:42": {"order:42", "held", "api@host1"},
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
	for _, b := range blocks(t) {
		n := 0
		for text := range operations {
			if strings.Contains(b, text) {
				n++
			}
		}
		for _, text := range own {
			if strings.Contains(b, text) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d tests for the block\n%s", n, b)
		}
	}
}

// Trap 5: the holder is told. Nobody else gets in before the holder has stopped.
func TestOperationsBreak(t *testing.T) {
	long(t)
	for name, options := range map[string][]holdfast.Option{
		"string": nil,
		"set":    {holdfast.WithOwner("alice")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunbook(t, 15*time.Second, options...)
			said := block(t, "local head, channel")
			if out := r.run(strings.Replace(said, operationsToken, "1", 1)); !strings.Contains(out, "no such hold") ||
				r.lease.Check(t.Context()) != nil {
				t.Fatalf("with another token: %s", out)
			}
			entered := r.wait()
			if out := r.run(said); !strings.Contains(out, "broken: it ends in") {
				t.Fatal(out)
			}
			if out := r.run(said); !strings.Contains(out, "no such hold") {
				t.Errorf("again: %s", out)
			}
			info, err := r.waiter.Inspect(t.Context(), "order:42")
			if err != nil || len(info.Holds) != 1 || info.Holds[0].State != lockinfo.StateBroken ||
				info.Holds[0].By != "alice with redis-cli" {
				t.Errorf("inspected: %+v, %v", info.Holds, err)
			}
			<-r.lease.Done()
			var lost *holdfast.LostError
			if err := r.lease.Err(); !errors.As(err, &lost) || lost.Reason != holdfast.LossBroken ||
				lost.By != "alice with redis-cli" {
				t.Errorf("the holder is told %v", err)
			}
			select {
			case err := <-entered:
				t.Errorf("another got in before the holder had stopped: %v", err)
				return
			default:
			}
			_ = r.lease.Release()
			if err := <-entered; err != nil {
				t.Error(err)
			}
		})
	}
}

// The command does what the script does.
func TestOperationsBreakCommand(t *testing.T) {
	long(t)
	r := newRunbook(t, 15*time.Second)
	entered := r.wait()
	r.run(block(t, "--token 1795486865300377\n"))
	<-r.lease.Done()
	var lost *holdfast.LostError
	if err := r.lease.Err(); !errors.As(err, &lost) || lost.Reason != holdfast.LossBroken {
		t.Errorf("the holder is told %v", err)
	}
	select {
	case err := <-entered:
		t.Errorf("another got in before the holder had stopped: %v", err)
		return
	default:
	}
	_ = r.lease.Release()
	if err := <-entered; err != nil {
		t.Error(err)
	}

	r = newRunbook(t, 15*time.Second)
	entered = r.wait()
	r.run(block(t, "--force"))
	if err := <-entered; err != nil {
		t.Error(err)
	}
}

// A hold that shares is left alone.
func TestOperationsBreakReader(t *testing.T) {
	r := newRunbook(t, time.Minute)
	_ = r.lease.Release()
	reader, err := r.holder.RWMutex("order:42").RLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.lease = reader
	if out := r.run(block(t, "local head, channel")); !strings.Contains(out, "no such hold") {
		t.Error(out)
	}
	if err := reader.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOperationsForce(t *testing.T) {
	long(t)
	for name, options := range map[string][]holdfast.Option{
		"string": nil,
		"set":    {holdfast.WithOwner("alice")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunbook(t, 6*time.Second, options...)
			said := block(t, "or not the only one")
			if out := r.run(strings.Replace(said, operationsToken, "1", 1)); !strings.Contains(out, "no such hold") ||
				r.lease.Check(t.Context()) != nil {
				t.Fatalf("with another token: %s", out)
			}
			entered := r.wait()
			if out := r.run(said); out != "1\n" {
				t.Errorf("it prints %q", out)
			}
			if err := <-entered; err != nil {
				t.Error(err)
			}
			<-r.lease.Done()
			if err := r.lease.Err(); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("the holder is told %v", err)
			}
		})
	}
}

// Trap 41: a full server keeps what is held, releases it, and grants nothing.
func TestOperationsFull(t *testing.T) {
	long(t)
	r := newRunbook(t, 15*time.Second)
	if _, err := r.server.Do("CONFIG", "SET", "maxmemory", "1000"); err != nil {
		t.Fatal(err)
	}
	mutex := r.waiter.Mutex("order:43")
	var failed *holdfast.StoreError
	if _, err := mutex.TryLock(t.Context()); !errors.As(err, &failed) || failed.Kind != holdfast.StoreOutOfMemory ||
		!strings.HasPrefix(failed.Err.Error(), "OOM") {
		t.Errorf("a new lock: %v", err)
	}
	if err := r.lease.Check(t.Context()); err != nil {
		t.Errorf("the holder: %v", err)
	}
	for len(r.renewed) > 0 { // what was renewed before
		<-r.renewed
	}
	select {
	case <-r.renewed:
	case <-r.lease.Done():
		t.Fatal(r.lease.Err())
	}
	if err := r.lease.Release(); err != nil {
		t.Errorf("a release: %v", err)
	}
	r.run(block(t, "--bigkeys"))
	lease, err := mutex.TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = lease.Release()
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
