package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// doctored runs the command, and returns its exit code and what it wrote.
func doctored(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(context.Background(), append([]string{"doctor"}, args...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestDoctor(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	forgetful := redisserver.Start(t)
	code, out, errs := doctored("--redis", "redis://"+forgetful.Addr())
	if code != exitEndangered || errs != "" {
		t.Errorf("exit code %d, %q; want %d", code, errs, exitEndangered)
	}
	for _, text := range []string{"LEVEL", "persistence", "change: appendonly yes", "means: a restart forgets", " danger, "} {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in:\n%s", text, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colors without a terminal")
	}

	durable := redisserver.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	t.Setenv("REDIS_URL", "redis://"+durable.Addr())
	code, out, errs = doctored("-o", "json")
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
	t.Setenv("REDIS_URL", "")
	srv, gone := redisserver.Start(t), redisserver.Start(t)
	gone.Kill()
	strange := redisserver.Start(t, "--rename-command", "TIME", "")
	for name, c := range map[string]struct {
		args []string
		code int
		text string
	}{
		"away":           {[]string{"--redis", "redis://" + gone.Addr()}, exitNoServer, "no answer from a server at redis://" + gone.Addr()},
		"wrong password": {[]string{"--redis", "redis://u:secret@" + srv.Addr()}, exitDenied, "refuses this client"},
		"cannot serve":   {[]string{"--redis", "redis://" + strange.Addr()}, exitNoServer, "cannot serve: ERR unknown command"},
		"wrong output":   {[]string{"-o", "yaml"}, exitUsage, `--output "yaml": it must be one of table, json`},
		"no TTL":         {[]string{"--ttl", "1ms"}, exitUsage, "--ttl 1ms: it must be 100ms to 24h"},
		"no URL":         {[]string{"--redis", "localhost"}, exitUsage, "it is not a URL"},
		"an argument":    {[]string{"x"}, exitUsage, "takes no arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := doctored(c.args...)
			if code != c.code || !strings.Contains(errs, c.text) || out != "" || strings.Contains(errs, "secret") {
				t.Errorf("exit code %d, %q, %q; want %d and %q", code, out, errs, c.code, c.text)
			}
		})
	}
}

// On a terminal the texts of a finding fit.
func TestDoctorLinesFit(t *testing.T) {
	f := doctor.Finding{Level: doctor.Danger, Check: "eviction", Server: "10.0.0.1:6379", Found: "one two three four five six seven eight nine ten",
		Means: "eleven twelve thirteen fourteen fifteen", Change: "sixteen seventeen eighteen nineteen twenty"}
	room := roomForFindings(doctor.Report{Findings: []doctor.Finding{f}}, 80)
	if want := 80 - len("unknown  eviction  10.0.0.1:6379  "); room != want {
		t.Errorf("room for %d columns, want %d", room, want)
	}
	got := strings.Join(linesOf(f, 30), "\n")
	const want = "one two three four five six\n  seven eight nine ten\n  means: eleven twelve\n    thirteen fourteen fifteen\n  change: " +
		"sixteen seventeen\n    eighteen nineteen twenty"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := len(linesOf(f, 0)); n != 3 {
		t.Errorf("without a terminal there are %d lines", n)
	}
	if room := roomForFindings(doctor.Report{Findings: []doctor.Finding{f}}, 20); room != 40 {
		t.Errorf("on a narrow terminal there is room for %d columns", room)
	}
}
