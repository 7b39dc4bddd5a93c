package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func TestDoctor(t *testing.T) {
	long(t)
	t.Setenv("REDIS_URL", "")
	forgetful := redisserver.Start(t)
	code, out, errs := execute(t, "doctor", "--redis", "redis://"+forgetful.Addr())
	if code != cli.ExitEndangered || errs != "" {
		t.Errorf("exit code %d, %q; want %d", code, errs, cli.ExitEndangered)
	}
	for _, text := range []string{"LEVEL", "persistence", "change: appendonly yes", "means: a restart forgets",
		" danger, "} {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in:\n%s", text, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colors without a terminal")
	}

	durable := redisserver.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	t.Setenv("REDIS_URL", "redis://"+durable.Addr())
	code, out, errs = execute(t, "doctor", "-o", "json")
	var report struct {
		Version    int  `json:"version"`
		Endangered bool `json:"endangered"`
		Findings   []struct{ Level, Check, Server, Found, Means, Change string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != 0 || errs != "" || report.Endangered || report.Version != 1 || len(report.Findings) < 10 {
		t.Errorf("exit code %d, %q, %+v", code, errs, report)
	}
}

func TestDoctorExitCodes(t *testing.T) {
	long(t)
	t.Setenv("REDIS_URL", "")
	srv, gone := redisserver.Start(t), redisserver.Start(t)
	gone.Kill()
	strange := redisserver.Start(t, "--rename-command", "TIME", "")
	for flag, c := range map[string]struct {
		code int
		text string
	}{
		"--redis redis://" + gone.Addr(): {cli.ExitNoServer,
			"no answer from a server at redis://" + gone.Addr()},
		"--redis redis://u:secret@" + srv.Addr(): {cli.ExitDenied, "refuses this client"},
		"--redis redis://" + strange.Addr():      {cli.ExitNoServer, "cannot serve: ERR unknown command"},
		"--output yaml":                          {cli.ExitUsage, `--output "yaml": it must be one of table, json`},
		"--ttl 1ms":                              {cli.ExitUsage, "--ttl 1ms: it must be 100ms to 24h"},
		"--redis localhost":                      {cli.ExitUsage, "it is not a URL"},
		"x":                                      {cli.ExitUsage, "takes no arguments"},
	} {
		code, out, errs := execute(t, append([]string{"doctor"}, strings.Fields(flag)...)...)
		if code != c.code || !strings.Contains(errs, c.text) || out != "" || strings.Contains(errs, "secret") {
			t.Errorf("%s: exit code %d, %q, %q; want %d and %q", flag, code, out, errs, c.code, c.text)
		}
	}
}
