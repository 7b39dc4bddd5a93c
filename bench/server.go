package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// start starts the server, and returns what ends it and removes all files.
func (b *bench) start(ctx context.Context) (stop func(), err error) {
	if b.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return nil, err
	}
	b.server, err = redisserver.Run(ctx)
	if err != nil {
		_ = os.RemoveAll(b.dir)
		return nil, err
	}
	stop = func() {
		_ = b.server.Close()
		_ = os.RemoveAll(b.dir)
	}
	b.target.Addr = b.server.Addr()
	if b.version, err = version(b.server); err != nil {
		stop()
	}
	return stop, err
}

// version asks the server whose it is, and for its version. Valkey reports the version of the Redis
// that it is compatible with as well.
func version(s *redisserver.Server) (string, error) {
	answer, err := s.Do("INFO", "server")
	text, _ := answer.(string)
	found := regexp.MustCompile(`(valkey|redis)_version:(\S+)`).FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return "", errors.Join(errors.New("INFO does not tell the version"), err)
	}
	for _, words := range found {
		if words[1] == "valkey" {
			return "Valkey " + words[2], nil
		}
	}
	return "Redis " + found[0][2], nil
}

// alwaysSent are the commands that scripts never call, so that every call of one was sent by a
// client. A name ending in "|" stands for all its subcommands.
var alwaysSent = []string{
	"eval", "evalsha", "fcall", "script|", "subscribe", "unsubscribe", "ssubscribe", "sunsubscribe", "hello", "client|",
	"ping",
}

// count returns how many commands clients sent according to the server's statistics. These count
// what scripts call, too, so plain commands are those alone that a contender says it sends, and
// that its scripts do not call.
func count(stats map[string]int, plain []string) int64 {
	var n int64
	for name, calls := range stats {
		if isSent(name, alwaysSent) || isSent(name, plain) {
			n += int64(calls)
		}
	}
	return n
}

func isSent(name string, sent []string) bool {
	for _, s := range sent {
		if name == s || strings.HasSuffix(s, "|") && strings.HasPrefix(name, s) {
			return true
		}
	}
	return false
}

// sent asks the server what was sent so far.
func (b *bench) sent(e entry) (int64, error) {
	stats := b.server.CommandStats()
	if len(stats) == 0 {
		return 0, fmt.Errorf("the server at %s does not tell its statistics", b.target.Addr)
	}
	return count(stats, e.sends), nil
}
