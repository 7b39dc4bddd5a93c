package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// TestQuorum looks at new masters, trusts them, runs a command under their lock, and looks again when one is dead.
func TestQuorum(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	var flags []string
	var masters []*redisserver.Server
	for range 3 {
		master := redisserver.Start(t)
		masters = append(masters, master)
		flags = append(flags, "--redis", "redis://"+master.Addr())
	}
	status := func(code int, more []string, want ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		got := run(context.Background(), append(append([]string{"quorum", "status"}, flags...), more...), strings.NewReader(""), &out, &errs)
		if got != code {
			t.Errorf("exit code %d, want %d: %s%s", got, code, &out, &errs)
		}
		for _, text := range want {
			if !strings.Contains(out.String()+errs.String(), text) {
				t.Errorf("%q is not in:\n%s%s", text, &out, &errs)
			}
		}
	}
	under := func() (code int, text string) {
		t.Helper()
		var out, errs bytes.Buffer
		code = run(context.Background(), append(append([]string{"run"}, flags...), "x", "--", "true"), strings.NewReader(""), &out, &errs)
		return code, errs.String()
	}
	status(69, nil, "node 1", "young", "it counts in", "no majority: 0 of 3")
	if code, text := under(); code != 69 || !strings.Contains(text, "does not count") {
		t.Errorf("under new masters: %d, %s", code, text)
	}
	status(0, []string{"--trust-new-nodes"}, "counts")
	status(0, nil, "counts")
	masters[1].Kill()
	status(0, nil, "away")
	if code, text := under(); code != 0 {
		t.Errorf("under two of three: %d, %s", code, text)
	}
	masters[2].Kill()
	status(69, nil, "no majority: 1 of 3")
}

func TestQuorumUsage(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"one server": {[]string{"quorum", "status"}, "names one server"},
		"two":        {[]string{"quorum", "status", "--redis", "redis://a", "--redis", "redis://b"}, "not of 2"},
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
