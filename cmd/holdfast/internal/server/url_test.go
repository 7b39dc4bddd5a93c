package server

import (
	"errors"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
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

func TestMembers(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want []string
	}{
		"one server":       {"redis://a", nil},
		"three":            {"quorum:redis://a,redis://b,redis://c", []string{"redis://a", "redis://b", "redis://c"}},
		"commas of a URL":  {"quorum:redis://a?x=1,2,redis://b", []string{"redis://a?x=1,2", "redis://b"}},
		"nothing":          {"quorum:", []string{""}},
		"another's commas": {"redis://a,b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Members(c.raw)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(got) > 1 && Quorum(got) != c.raw {
				t.Errorf("joined again: %q", Quorum(got))
			}
		})
	}
}

func TestQuorumIsChecked(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"three": {"quorum:redis://a,redis://b,redis://c", ""},
		"two":   {"quorum:redis://a,redis://b", "2 masters: a quorum has 3"},
		"four":  {"quorum:redis://a,redis://b,redis://c,redis://d", "4 masters: a quorum has 3"},
		"one":   {"quorum:redis://a", "1 masters: a quorum has 3"},
		"none":  {"quorum:", "master 1 of 1: it is not a URL"},
		"wrong": {"quorum:redis://a,http://b,redis://c", "master 2 of 3: its scheme is unknown"},
		"bare": {"quorum:redis://a,b,redis://c",
			`master 1 of 2: redis://...: it names more than one host`}, // and not "2 masters"
		"words": {"quorum:a,b,c", `master 1 of 1: it is not a URL`},
		"twice": {"quorum:redis://a,redis://b,redis://a", "master 3 of 3: its URL is given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(c.raw, TLS{})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The passwords of all masters are hidden.
func TestQuorumIsRedacted(t *testing.T) {
	const raw = "quorum:redis://u:secret@a,redis://b,redis://:hidden@c"
	for _, text := range []string{Redact(raw), WithoutPasswords(raw)} {
		if strings.Contains(text, "secret") || strings.Contains(text, "hidden") ||
			!strings.Contains(text, "redis://b,") {
			t.Errorf("got %s", text)
		}
	}
	if text := Redact(raw); text != "quorum:redis://***@a,redis://b,redis://***@c" {
		t.Errorf("got %s", text)
	}
}

func TestParseSentinel(t *testing.T) {
	type want struct {
		addrs, login, own string
		name              string
		db                int
		tls               bool
	}
	for raw, want := range map[string]want{
		"redis+sentinel://a/main": {addrs: "a:26379", name: "main",
			login: ":", own: ":"},
		"redis+sentinel://a:1,b:2,c/main/3": {addrs: "a:1 b:2 c:26379",
			name: "main", db: 3, login: ":", own: ":"},
		"rediss+sentinel://me:p%40ss@a,b/main": {addrs: "a:26379 b:26379",
			name: "main", tls: true, login: "me:p@ss", own: ":"},
		"redis+sentinel://:pw@[::1]:7,[::2],c/my%20main": {addrs: "[::1]:7 [::2]:26379 c:26379", name: "my main",
			login: ":pw", own: ":"},
		"redis+sentinel://a/m?sentinel_password=x@y&sentinel_username=s&read_timeout=2s": {addrs: "a:26379", name: "m",
			login: ":", own: "s:x@y"},
	} {
		o, err := sentinelOf(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got := want
		got.addrs, got.login, got.own = strings.Join(o.SentinelAddrs,
			" "), o.Username+":"+o.Password, o.SentinelUsername+":"+o.SentinelPassword
		got.name, got.db, got.tls = o.MasterName, o.DB, o.TLSConfig != nil
		if got != want {
			t.Errorf("%s: got %+v", raw, got)
		}
	}
}

func sentinelOf(raw string) (*redis.FailoverOptions, error) {
	l, err := read(raw)
	if err != nil {
		return nil, err
	}
	return l.sentinel(TLS{})
}

func clusterOf(raw string) (*redis.ClusterOptions, error) {
	l, err := read(raw)
	if err != nil {
		return nil, err
	}
	return l.cluster(TLS{})
}

func TestParseCluster(t *testing.T) {
	for raw, want := range map[string][]string{
		"redis+cluster://a":                 {"a:6379"},
		"redis+cluster://me:pw@a:1,b,c:3/":  {"a:1", "b:6379", "c:3"},
		"rediss+cluster://[::1]:7,[::2]":    {"[::1]:7", "[::2]:6379"},
		"REDIS+CLUSTER://a,b?pool_size=100": {"a:6379", "b:6379"},
	} {
		o, err := clusterOf(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if !reflect.DeepEqual(o.Addrs, want) || strings.HasPrefix(raw, "rediss") != (o.TLSConfig != nil) ||
			strings.Contains(raw, "me:pw") != (o.Password == "pw") {
			t.Errorf("%s: got %+v", raw, o)
		}
	}
}

func TestTLSFiles(t *testing.T) {
	if _, err := Connect("redis+cluster://a,b", TLS{CA: "/none"}); err == nil ||
		!strings.Contains(err.Error(), "not encrypted") {
		t.Error(err)
	}
	if _, err := Connect("rediss+cluster://a,b", TLS{CA: "/none"}); err == nil || errors.Unwrap(err) == nil {
		t.Error(err)
	}
}

func TestManyShown(t *testing.T) {
	for raw, want := range map[string]string{
		"redis+sentinel://me:secret@a:1,b:2/main":                       "redis+sentinel://me@a:1,b:2/main",
		"redis+cluster://:secret@a:1,b:2":                               "redis+cluster://a:1,b:2",
		"redis+sentinel://a/m?sentinel_password=secret&read_timeout=1s": "redis+sentinel://a/m?read_timeout=1s",
	} {
		if got := WithoutPasswords(raw); got != want {
			t.Errorf("%s: shown as %s", raw, got)
		}
		if got := Redact(raw); strings.Contains(got, "secret") {
			t.Errorf("%s: redacted to %s", raw, got)
		}
	}
}
