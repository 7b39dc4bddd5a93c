package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// New masters are young until they are trusted, and a command runs under the lock of a majority.
func TestQuorum(t *testing.T) {
	long(t)
	t.Setenv("REDIS_URL", "")
	var flags []string
	var masters []*redisserver.Server
	for range 3 {
		master := redisserver.Start(t)
		masters = append(masters, master)
		flags = append(flags, "--redis", "redis://"+master.Addr())
	}
	// A master that stands still for a moment is away in that moment: then expect tries again.
	expect := func(args []string, code int, want ...string) {
		t.Helper()
		for late := time.Now().Add(30 * time.Second); ; {
			var out, errs bytes.Buffer
			got := run(context.Background(), args, strings.NewReader(""), &out, &errs)
			output := out.String() + errs.String()
			if got == code && !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(output, text) }) {
				return
			}
			if slow := strings.Contains(output, "timeout") || strings.Contains(output, "deadline"); !slow || time.Now().After(late) {
				t.Fatalf("%v: exit code %d, want %d, and %q in:\n%s", args, got, code, want, output)
			}
		}
	}
	status := append([]string{"quorum", "status"}, flags...)
	under := append(append([]string{"run"}, flags...), "x", "--", "true")
	expect(status, 69, "node 1", "young", "it counts in", "no majority: 0 of 3")
	expect(under, 69, "does not count")
	expect(append(status, "--trust-new-nodes"), 0, "counts")
	expect(status, 0, "counts")
	proxy := fault.Start(t, masters[0].Addr())
	twins := []string{"quorum", "status", flags[0], flags[1], "--redis", "redis://" + proxy.Addr(), flags[2], flags[3]}
	expect(twins, 0, "twin", "it is the same server as node ")
	masters[1].Kill()
	expect(status, 0, "away")
	expect(under, 0)
	masters[2].Kill()
	expect(status, 69, "no majority: 1 of 3")
}

func TestQuorumUsage(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"one server": {[]string{"quorum", "status"}, "names one server"},
		"two":        {[]string{"quorum", "status", "--redis", "redis://a", "--redis", "redis://b"}, "2 masters: a quorum has 3"},
		"long TTL":   {[]string{"run", "--redis", "quorum:redis://a,redis://b,redis://c", "--ttl", "1h", "x", "--", "true"}, "at most 5m"},
		"no command": {[]string{"quorum", "stats"}, `unknown command "stats"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(context.Background(), c.args, strings.NewReader(""), &out, &errs); code != 64 || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit code %d, %s; want 64 and %q", code, &errs, c.want)
			}
		})
	}
}
