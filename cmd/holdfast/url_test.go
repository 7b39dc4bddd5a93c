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
	forms := map[string]struct {
		args func(url string) []string
		want string
	}{
		"run": {func(url string) []string { return []string{"run", "-v", "--redis", url, "job", "--", "true"} },
			"--redis or REDIS_URL: "},
		"run, =": {func(url string) []string { return []string{"run", "--redis=" + url, "job", "--", "true"} },
			"--redis or REDIS_URL: "},
		"quorum": {func(url string) []string {
			return []string{"run", "--redis", "quorum:redis://[::1]," + url + ",redis://[::2]", "job", "--", "true"}
		}, "--redis or REDIS_URL: "},
		"quorum first": {func(url string) []string { return []string{"quorum", "status", "--redis", "quorum:" + url} },
			"--redis or REDIS_URL: master "},
		"several": {func(url string) []string {
			return []string{"quorum", "status", "--redis", url, "--redis", url, "--redis", "redis://[::1]"}
		}, "--redis or REDIS_URL: master "},
		"status": {func(url string) []string { return []string{"quorum", "status", "--redis", url} },
			"--redis or REDIS_URL names one"},
		"demo": {func(url string) []string { return []string{"demo", "--redis", url} }, "--redis: "},
		"demo embedded": {func(url string) []string { return []string{"demo", "--embedded", "--redis", url} },
			"--embedded"},
	}
	// In the place of another argument, a URL is recognized by its "://".
	misplaced := map[string]struct {
		args func(url string) []string
		want string
	}{
		"name": {func(url string) []string { return []string{"run", url, "job", "--", "true"} },
			"more than one NAME"},
		"no --":    {func(url string) []string { return []string{"run", "--", url} }, "no NAME"},
		"command":  {func(url string) []string { return []string{url} }, "unknown command"},
		"argument": {func(url string) []string { return []string{"demo", url} }, "takes no arguments"},
		"another flag": {func(url string) []string { return []string{"run", "--ttl", url, "job", "--", "true"} },
			"--ttl"},
		"short flag": {func(url string) []string { return []string{"run", "-w" + url, "job", "--", "true"} }, "--wait"},
		"one hyphen": {func(url string) []string { return []string{"run", "-redis=" + url, "job", "--", "true"} },
			"unknown shorthand"},
		"address": {func(url string) []string { return []string{"dev", "--addr", url} }, "--addr"},
	}
	check := func(name, raw string, args []string, want string) {
		t.Run(name+" "+raw, func(t *testing.T) {
			code, out, errs := execute(t, args...)
			plain, _ := url.QueryUnescape(out + errs)
			if code != cli.ExitUsage || strings.Contains(out+errs+plain, "gehe") || !strings.Contains(errs, want) {
				t.Errorf("exit code %d, %q, want %q", code, out+errs, want)
			}
		})
	}
	for _, raw := range urls {
		for name, form := range forms {
			check(name, raw, form.args(raw), form.want)
		}
		for name, form := range misplaced {
			if strings.Contains(raw, "://") {
				check(name, raw, form.args(raw), form.want)
			}
		}
		t.Run("environment "+raw, func(t *testing.T) {
			t.Setenv("REDIS_URL", raw)
			check("run", raw, []string{"run", "job", "--", "true"}, "--redis or REDIS_URL: ")
			check("status", raw, []string{"quorum", "status"}, "--redis or REDIS_URL")
		})
	}
}
