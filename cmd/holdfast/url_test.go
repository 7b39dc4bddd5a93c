package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// The command shows nothing of a URL that it cannot read, wherever the URL is given. "geheim" is
// the password. One URL has a line break in it, so the test looks for "gehe".
// TestUnreadableURLIsNotShown of package server has more of such URLs.
func TestURLIsNotShown(t *testing.T) {
	wantByCommand := map[string]string{ // URL stands for the URL; without it, the URL is in REDIS_URL
		"run -v --redis URL job -- true":                                 "--redis or REDIS_URL: ",
		"run --redis=URL job -- true":                                    "--redis or REDIS_URL: ",
		"run --redis quorum:redis://[::1],URL,redis://[::2] job -- true": "--redis or REDIS_URL: ",
		"quorum status --redis quorum:URL":                               "--redis or REDIS_URL: master ",
		"quorum status --redis URL --redis URL --redis redis://[::1]":    "--redis or REDIS_URL: master ",
		"quorum status --redis URL":                                      "--redis or REDIS_URL names one",
		"demo --redis URL":                                               "--redis: ",
		"demo --embedded --redis URL":                                    "--embedded",
		"run job -- true":                                                "--redis or REDIS_URL: ",
		"quorum status":                                                  "--redis or REDIS_URL",
		// In the place of another argument, it is recognized by its "://".
		"run URL job -- true":        "more than one NAME",
		"run -- URL":                 "no NAME",
		"URL":                        "unknown command",
		"demo URL":                   "takes no arguments",
		"run --ttl URL job -- true":  "--ttl",
		"run -wURL job -- true":      "--wait",
		"run -redis=URL job -- true": "unknown shorthand",
		"dev --addr URL":             "--addr",
	}
	for _, raw := range []string{"redis://u:geheim", "unix://u:geheim", "rediss://u:gehe\nim@host"} {
		for line, want := range wantByCommand {
			env := ""
			if !strings.Contains(line, "URL") {
				env = raw
			}
			t.Setenv("REDIS_URL", env)
			args := strings.Fields(line)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "URL", raw)
			}
			code, out, errs := execute(t, args...)
			if code != cli.ExitUsage || !strings.Contains(errs, want) {
				t.Errorf("%s, %q: exit code %d and %q, want %d and %q", line, raw, code, errs, cli.ExitUsage, want)
			}
			if strings.Contains(out+errs, "gehe") {
				t.Errorf("%s, %q: the password is shown: %q", line, raw, out+errs)
			}
		}
	}
}
