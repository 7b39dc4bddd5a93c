package server

import (
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	type want struct {
		addr, login, tls string
		db               int
	}
	for raw, want := range map[string]want{
		"redis://localhost":                   {addr: "localhost:6379"},
		"redis://":                            {addr: "localhost:6379"},
		"redis://:7000":                       {addr: "localhost:7000"},
		"redis://host:7000/2":                 {addr: "host:7000", db: 2},
		"redis://host/2/":                     {addr: "host:6379", db: 2},
		"redis://host/2?db=3":                 {addr: "host:6379", db: 3},
		"redis://host/2?db=":                  {addr: "host:6379", db: 2},
		"REDISS://user:pass@Host_1.test":      {addr: "Host_1.test:6379", login: "user:pass", tls: "Host_1.test"},
		"redis://:p%40ss@host:1":              {addr: "host:1", login: ":p@ss"},
		"redis://u:p@ss@host:1":               {addr: "host:1", login: "u:p@ss"},
		"rediss://[::1]:7000":                 {addr: "[::1]:7000", tls: "::1"},
		"redis://[fe80::1%25eth0]":            {addr: "[fe80::1%eth0]:6379"},
		"redis://host/0?client_name=me@there": {addr: "host:6379"},
		"unix:///run/redis.sock?db=1":         {addr: "/run/redis.sock", db: 1},
		"unix://:pass@/run/my%20redis.sock":   {addr: "/run/my redis.sock", login: ":pass"},
	} {
		o, err := ParseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got := want
		got.addr, got.db, got.login, got.tls = o.Addr, o.DB, "", ""
		if o.Username+o.Password != "" {
			got.login = o.Username + ":" + o.Password
		}
		if o.TLSConfig != nil {
			got.tls = o.TLSConfig.ServerName
		}
		if got != want {
			t.Errorf("%s: got %+v", raw, got)
		}
	}
}

// unreadable returns malformed URLs, each with a password in another place, and parts of their
// errors.
func unreadable(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/unreadable.txt")
	if err != nil {
		t.Fatal(err)
	}
	wantOf := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if quoted, err := strconv.QuotedPrefix(line); err == nil {
			raw, _ := strconv.Unquote(quoted)
			wantOf[raw] = strings.TrimSpace(line[len(quoted):])
		}
	}
	return wantOf
}

// showsSecret reports whether a text shows a password, plain, percent-encoded, or in part.
func showsSecret(text, secret string) bool {
	text = strings.ToLower(text)
	plain, _ := url.QueryUnescape(text)
	return strings.Contains(text, secret) || strings.Contains(plain, secret) || strings.Contains(text, secret[:3])
}

// Nothing of a malformed URL is shown. "geheim" is the password.
func TestUnreadableURLIsNotShown(t *testing.T) {
	for raw, want := range unreadable(t) {
		for form, url := range map[string]string{
			"alone": raw, "of a quorum": "quorum:redis://[::1]," + raw + ",redis://c",
			"of a quorum, first": "quorum:" + raw + ",redis://b,redis://c",
		} {
			err := Check(url, TLS{})
			if err == nil || showsSecret(err.Error(), "geheim") ||
				form == "alone" && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %q: error %v, want %q", form, url, err, want)
			}
			for _, text := range []string{Redact(url), WithoutPasswords(url)} {
				if showsSecret(text, "geheim") {
					t.Errorf("%s, %q is shown as %q", form, url, text)
				}
			}
		}
		if _, err := ParseURL(raw); err == nil || showsSecret(err.Error(), "geheim") {
			t.Errorf("%q: error %v", raw, err)
		}
	}
}

func TestSeveralServersAreNotOne(t *testing.T) {
	for _, raw := range []string{"redis+sentinel://a,b/main", "redis+cluster://a"} {
		if _, err := ParseURL(raw); err == nil || !strings.Contains(err.Error(), "a URL of one is needed") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// FuzzURL: no URL causes a panic. Nothing of a malformed URL is shown, and no password of others.
func FuzzURL(f *testing.F) {
	for _, before := range []string{"redis://me:", "rediss://:", "unix://me:", "redis+sentinel://me:",
		"rediss+cluster://me:", "http://me:", "me:", "redis://host?password=",
		"redis+sentinel://a,b/main?sentinel_password=", "quorum:redis://[::1],redis://u:", "redis://u%3A"} {
		for _, after := range []string{"@host", "@host:1/2", "@[::1]:7", "@host:x", "%zz@host", "@a,b:2,c/main/0",
			"/x@y@z:p", "@h?client_name=a@b", "", "@,", "@:", "@/?&=#", "%40h"} {
			f.Add(before, after)
		}
	}
	const secret = "s3cr3t"
	f.Fuzz(func(t *testing.T, before, after string) {
		raw := before + secret + after
		for what, parse := range map[string]func() error{
			"any": func() error { return Check(raw, TLS{}) },
			"one": func() error { _, err := ParseURL(raw); return err },
		} {
			if err := parse(); err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %q: %v", what, raw, err)
			}
		}
		l, err := read(raw)
		if err == nil && strings.Contains(strings.Join(l.hosts, ",")+l.path, secret) || Members(raw) != nil {
			return // the text is not in the place of a password
		}
		if shown := Redact(raw); strings.Contains(shown, secret) {
			t.Errorf("%q is shown as %q", raw, shown)
		}
	})
}
