package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// The command shows nothing of a URL that it cannot read, wherever the URL is given. "geheim" is
// the password.
func TestURLIsNotShown(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	urls := []string{ // TestUnreadableURLIsNotShown of package server has more
		"redis://u:geheim", "redis://u%3Ageheim%40h", "redis://host?geheim=1", "geheim", "http://u:geheim@host",
		"unix://u:geheim", "rediss://u:gehe\nim@host", "redis+sentinel://u:geheim@a,b",
	}
	forms := map[string]string{ // what is said of a command line
		"run -v --redis URL job -- true":                                 "--redis or REDIS_URL: ",
		"run --redis=URL job -- true":                                    "--redis or REDIS_URL: ",
		"run --redis quorum:redis://[::1],URL,redis://[::2] job -- true": "--redis or REDIS_URL: ",
		"quorum status --redis quorum:URL":                               "--redis or REDIS_URL: master ",
		"quorum status --redis URL --redis URL --redis redis://[::1]":    "--redis or REDIS_URL: master ",
		"quorum status --redis URL":                                      "--redis or REDIS_URL names one",
		"demo --redis URL":                                               "--redis: ",
		"demo --embedded --redis URL":                                    "--embedded",
	}
	misplaced := map[string]string{ // in the place of another argument, a URL is recognized by its "://"
		"run URL job -- true":        "more than one NAME",
		"run -- URL":                 "no NAME",
		"URL":                        "unknown command",
		"demo URL":                   "takes no arguments",
		"run --ttl URL job -- true":  "--ttl",
		"run -wURL job -- true":      "--wait",
		"run -redis=URL job -- true": "unknown shorthand",
		"dev --addr URL":             "--addr",
	}
	check := func(line, raw, want string) {
		t.Run(line+" "+raw, func(t *testing.T) {
			args := strings.Fields(line)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "URL", raw)
			}
			code, out, errs := execute(t, args...)
			plain, _ := url.QueryUnescape(out + errs)
			if code != cli.ExitUsage || strings.Contains(out+errs+plain, "gehe") || !strings.Contains(errs, want) {
				t.Errorf("exit code %d, %q, want %q", code, out+errs, want)
			}
		})
	}
	for _, raw := range urls {
		for line, want := range forms {
			check(line, raw, want)
		}
		for line, want := range misplaced {
			if strings.Contains(raw, "://") {
				check(line, raw, want)
			}
		}
		t.Run("environment "+raw, func(t *testing.T) {
			t.Setenv("REDIS_URL", raw)
			check("run job -- true", raw, "--redis or REDIS_URL: ")
			check("quorum status", raw, "--redis or REDIS_URL")
		})
	}
}
