package server

import (
	"net/url"
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

// unreadable are malformed URLs, each with a password in another place, and parts of their errors.
var unreadable = map[string]string{
	"":                                                     "it is not a URL",
	"geheim":                                               "it is not a URL",
	"localhost:6379":                                       "it is not a URL",
	"me:geheim@localhost":                                  "it is not a URL",
	"redis:me:geheim@localhost":                            "it is not a URL",
	"redis:/me:geheim@localhost":                           "it is not a URL",
	"redis//me:geheim@localhost":                           "it is not a URL",
	"geheim://host":                                        "its scheme is unknown",
	"me:geheim@redis://host":                               "its scheme is unknown",
	"redis+geheim://host":                                  "its scheme is unknown",
	"http://me:geheim@host":                                "its scheme is unknown",
	"redis://u:geheim":                                     "redis://...: the port must be 1 to 65535",
	"redis://geheim:":                                      "redis://...: the port must be",
	"rediss://u:geheim/0":                                  "rediss://...: the port must be",
	"redis://u:geheim,b":                                   "more than one host",
	"redis://u:12345:geheim":                               "IPv6 in brackets",
	"redis://u%3Ageheim%40h":                               "the name of a host",
	"redis://u%3Ageheim%40h:6379":                          "the name of a host",
	"redis://u:geheim%40h":                                 "the port must be",
	"redis://[geheim]:1":                                   "IPv6 in brackets",
	"redis://[::1]geheim:1":                                "IPv6 in brackets",
	"redis://geheim]:1":                                    "the name of a host",
	"redis://me:x@host:geheim":                             "the port must be",
	"redis://me:geheim@host:65536":                         "the port must be",
	"redis://me:geheim@host:0":                             "the port must be",
	"redis://me:geheim@host:+1":                            "the port must be",
	"redis://me:geheim@host/x":                             "the database must be",
	"redis://me:x@host/geheim":                             "the database must be",
	"redis://me:x@host/geheim?db=1":                        "the database must be",
	"redis://me:geheim@host/-1":                            "the database must be",
	"redis://me:geheim@host?db=-1":                         "the database must be",
	"redis://host/1/geheim":                                "only a database number",
	"redis://host//geheim":                                 "an empty part",
	"redis://host/%zzgeheim":                               "not percent-encoded",
	"redis://me:geheim@host?nonsense=1":                    "option 1 of 1",
	"redis://host?db=1&geheim=1":                           "option 2 of 2",
	"redis://host?db=geheim":                               "option 1 of 1",
	"redis://host?read_timeout=geheim":                     "option 1 of 1",
	"redis://host?pool_fifo=geheim":                        "option 1 of 1",
	"redis://host?protocol=3&pool_size=%zgeh":              "option 2 of 2",
	"redis://host?password=geheim":                         "option 1 of 1",
	"redis://host?addr=geheim:1":                           "option 1 of 1",
	"redis://me:ge?geheim@host":                            "not percent-encoded",
	"redis://me:1?geheim@host":                             "option 1 of 1",
	"redis://me:geheim%zz@host":                            "not percent-encoded",
	"redis://me:geheim/geheim@host":                        "not percent-encoded",
	"redis://me:1/geheim@host":                             "not percent-encoded",
	"redis://me:#geheim@host":                              "must be percent-encoded",
	"redis://me:1#geheim@host":                             "must be percent-encoded",
	"redis://me:ge heim@host":                              "must be percent-encoded",
	"redis://me:geheim@host\n":                             "must be percent-encoded",
	"redis://me:geheim@ho\x00st":                           "must be percent-encoded",
	"redis://me:geheim@geheim@host:x":                      "the port must be",
	"redis://me:<geheim>@host":                             "not percent-encoded",
	"unix://":                                              "it has no path",
	"unix://me:geheim@":                                    "it has no path",
	"unix://geheim":                                        "it has no host",
	"unix://me:geheim/run/redis.sock":                      "it has no host",
	"unix:///geheim@run":                                   "not percent-encoded",
	"unix:///socket?db=-1":                                 "the database must be",
	"redis+sentinel://u:geheim":                            "host 1 of 1: the port must be",
	"redis+sentinel://u:geheim,b/main":                     "host 1 of 2: the port must be",
	"redis+sentinel://":                                    "host 1 of 1: it is empty",
	"redis+sentinel://me:geheim@a,,b/main":                 "host 2 of 3: it is empty",
	"redis+sentinel://me:x@a,b:geheim/main":                "host 2 of 2: the port must be",
	"redis+sentinel://a,::geheim/main":                     "IPv6 in brackets",
	"redis+sentinel://a,%67eheim/main":                     "host 2 of 2: the name of a host",
	"redis+sentinel://me:geheim@a,b":                       "no master name",
	"redis+sentinel://me:geheim@a,b/":                      "no master name",
	"redis+sentinel://me:x@a/main/geheim":                  "the database must be",
	"redis+sentinel://me:x@a/main/1/geheim":                "only the master name and a database number",
	"redis+sentinel://me:x@a/geheim%zz":                    "not percent-encoded",
	"redis+sentinel://me:geheim@a/main?no=1":               "option 1 of 1",
	"redis+sentinel://a/main?sentinel_password=geheim&x=1": "option 2 of 2",
	"redis+sentinel://a/m?sentinel_password=ge@geheim&x":   "option 2 of 2",
	"redis+sentinel://a/m?sentinel_password=geheim%zz":     "option 1 of 1",
	"redis+sentinel://a/main?password=geheim":              "option password",
	"redis+sentinel://a/main?replica_only=geheim":          "option replica_only",
	"redis+sentinel://a/main?route_randomly=true":          "option route_randomly",
	"redis+sentinel://me:geheim%zz@a/main":                 "not percent-encoded",
	"redis+sentinel://me:geheim/?geheim@a/main":            "not percent-encoded",
	"redis+sentinel://u:1/geheim@a":                        "not percent-encoded",
	"redis+cluster://me:x@a,b/geheim":                      "no database numbers",
	"redis+cluster://me:geheim@a?addr=b:1":                 "option 1 of 1",
	"redis+cluster://me:geheim@a?read_only=true":           "option read_only",
	"redis+cluster://me:x@a?pool_size=geheim":              "option 1 of 1",
	"redis+cluster://a?password=geheim":                    "option 1 of 1",
	"redis+quorum://me:geheim@a,b":                         "its scheme is unknown",
}

// showsSecret reports whether a text shows a password, plain, percent-encoded, or in part.
func showsSecret(text, secret string) bool {
	text = strings.ToLower(text)
	plain, _ := url.QueryUnescape(text)
	return strings.Contains(text, secret) || strings.Contains(plain, secret) || strings.Contains(text, secret[:3])
}

// Nothing of a malformed URL is shown. "geheim" is the password.
func TestUnreadableURLIsNotShown(t *testing.T) {
	for raw, want := range unreadable {
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
