package harness

import (
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// Must sends a command of the test itself.
func Must(t *testing.T, srv *redisserver.Server, args ...any) any {
	t.Helper()
	v, err := srv.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args[:min(2, len(args))], err)
	}
	return v
}

// KeyOf returns the key of a name's state.
func KeyOf(name string) string { return "holdfast:{" + name + "}" }

// Queued returns the number of tickets in the server's queue.
func Queued(srv *redisserver.Server, name string) int64 {
	v, _ := srv.Do("ZCOUNT", KeyOf(name)+":queue", "1", "+inf")
	n, _ := v.(int64)
	return n
}

// Scripts returns how many scripts the server has run.
func Scripts(srv *redisserver.Server) int {
	stats := srv.CommandStats()
	return stats["eval"] + stats["evalsha"]
}

// Waiting waits until n tickets are in the server's queue.
func Waiting(t *testing.T, srv *redisserver.Server, name string, n int64) {
	t.Helper()
	Eventually(t, "all stand in the queue", func() bool { return Queued(srv, name) == n })
}

// Listening returns the number of channels of processes that somebody listens to.
func Listening(t *testing.T, srv *redisserver.Server) int {
	t.Helper()
	channels, _ := Must(t, srv, "PUBSUB", "CHANNELS", "holdfast:@*").([]any)
	return len(channels)
}

// SentTo returns the names of the commands among what a proxy recorded, in order.
func SentTo(p *fault.Proxy) (names []string) {
	for _, chunk := range p.Sent("") {
		for _, m := range beginning.FindAllStringSubmatch(chunk, -1) {
			names = append(names, strings.ToUpper(m[1]))
		}
	}
	return names
}

var beginning = regexp.MustCompile(`\*\d+\r\n\$\d+\r\n([A-Za-z]+)\r\n`)
