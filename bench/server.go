package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

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

// count sums the numbers of the commands that clients sent, by the server's statistics. These count
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
	return slices.ContainsFunc(sent, func(s string) bool {
		return name == s || strings.HasSuffix(s, "|") && strings.HasPrefix(name, s)
	})
}

// A bill is what was spent up to a moment.
type bill struct {
	commands    int64         // that clients sent
	inside      int64         // commands that scripts called
	served      time.Duration // the server's time for these commands
	serverCPU   time.Duration // of the server, which also reads, writes and expires
	cpu         time.Duration // of this process
	allocations uint64        // of this process
}

// spent returns the bill of a contender, as its server and this process know it.
func (b *bench) spent(e entry) (bill, error) {
	stats, times := b.server.CommandStats(), b.server.CommandTimes()
	if len(stats) == 0 {
		return bill{}, fmt.Errorf("the server at %s does not tell its statistics", b.target.Addr)
	}
	var total int64
	for _, calls := range stats {
		total += int64(calls)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return bill{
		commands:    count(stats, e.sends),
		inside:      total - count(stats, append([]string{"info"}, e.sends...)),
		served:      time.Duration(count(times, e.sends)) * time.Microsecond,
		serverCPU:   b.server.CPUTime(),
		cpu:         cpuTime(),
		allocations: memory.Mallocs,
	}, nil
}

// since returns what came to the bill after an earlier one.
func (b bill) since(earlier bill) bill {
	return bill{b.commands - earlier.commands, b.inside - earlier.inside, b.served - earlier.served,
		b.serverCPU - earlier.serverCPU, b.cpu - earlier.cpu, b.allocations - earlier.allocations}
}

// share notes in a sample what each of so many operations has cost.
func (b bill) share(s *sample, operations int64) {
	s.commands = share(b.commands, operations)
	s.inside = share(b.inside, operations)
	s.served = time.Duration(share(int64(b.served), operations))
	s.serverCPU = time.Duration(share(int64(b.serverCPU), operations))
	s.cpu = time.Duration(share(int64(b.cpu), operations))
	s.allocations = share(int64(b.allocations), operations)
}
