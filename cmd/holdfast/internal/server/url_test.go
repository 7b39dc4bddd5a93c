package server

import (
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	for raw, addr := range map[string]string{
		"redis://localhost":                   "localhost:6379",
		"redis://host:7000/2":                 "host:7000",
		"rediss://user:pass@host":             "host:6379",
		"redis://:p%40ss@host:1":              "host:1",
		"redis://[::1]:7000":                  "[::1]:7000",
		"redis://host/0?client_name=me@there": "host:6379",
		"unix:///run/redis.sock?db=1":         "/run/redis.sock",
	} {
		options, err := ParseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if options.Addr != addr {
			t.Errorf("%s: address %s, want %s", raw, options.Addr, addr)
		}
	}
}

// Whatever is wrong, the password is not part of the error; "secret" stands for it.
func TestParseURLFails(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                  "must look like redis://HOST:PORT",
		"localhost:6379":                    "must look like redis://HOST:PORT",
		"me:secret@localhost":               `"***@localhost" is not a URL`,
		"http://me:secret@host":             "scheme http",
		"redis://me:secret@host:port":       `invalid port ":port"`,
		"redis://me:secret@host/x":          `database number: "x"`,
		"redis://me:secret@host?nonsense=1": "unexpected option: nonsense",
		"redis://me:secret%zz@host":         "not percent-encoded",
		"redis://me:secret/secret@host":     "not percent-encoded",
		"redis://me:secret@secret@host:x":   `invalid port ":x"`,
		"redis://me:secret@host:65536":      `port "65536" is none: 1 to 65535`,
		"redis://me:secret@host:0":          `port "0" is none: 1 to 65535`,
		"redis://me:secret@host/-1":         `database number: "-1"`,
		"redis://me:secret@host?db=-1":      `database number: "-1"`,
		"unix:///socket?db=-1":              `database number: "-1"`,
		"redis://me:secret@a,b":             "more than one host",
		"unix://":                           "empty unix socket path",
	} {
		_, err := ParseURL(raw)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v, want %q", raw, err, want)
		}
	}
}

// FuzzURL: no URL makes a panic, and whatever is wrong with it, the password is not part of what is said.
func FuzzURL(f *testing.F) {
	for _, before := range []string{"redis://me:", "rediss://:", "unix://me:", "redis+sentinel://me:", "rediss+cluster://me:", "http://me:", "me:", "redis://host?password=",
		"redis+sentinel://a,b/main?sentinel_password="} {
		for _, after := range []string{"@host", "@host:1/2", "@[::1]:7", "@host:x", "%zz@host", "@a,b:2,c/main/0", "/x@y@z:p", "@h?client_name=a@b", "", "@,", "@:", "@/?&=#"} {
			f.Add(before, after)
		}
	}
	const secret = "s3cr3t"
	f.Fuzz(func(t *testing.T, before, after string) {
		raw := before + secret + after
		// A secret is what stands before the last "@", behind a colon, or in an option named password.
		for what, parse := range map[string]func() error{
			"one":      func() error { _, err := ParseURL(raw); return err },
			"sentinel": func() error { _, err := parseSentinel(raw); return err },
			"cluster":  func() error { _, err := parseCluster(raw); return err },
		} {
			if err := parse(); err != nil && strings.Contains(after, "@") && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %q: %v", what, raw, err)
			}
		}
		if shown := Redact(raw); strings.Contains(after, "@") && strings.Contains(shown, secret) {
			t.Errorf("%q is shown as %q", raw, shown)
		}
	})
}
