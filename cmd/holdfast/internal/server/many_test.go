package server

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestParseSentinel(t *testing.T) {
	type want struct {
		addrs, login, own string
		name              string
		db                int
		tls               bool
	}
	for raw, want := range map[string]want{
		"redis+sentinel://a/main":                                                        {addrs: "a:26379", name: "main", login: ":", own: ":"},
		"redis+sentinel://a:1,b:2,c/main/3":                                              {addrs: "a:1 b:2 c:26379", name: "main", db: 3, login: ":", own: ":"},
		"rediss+sentinel://me:p%40ss@a,b/main":                                           {addrs: "a:26379 b:26379", name: "main", tls: true, login: "me:p@ss", own: ":"},
		"redis+sentinel://:pw@[::1]:7,[::2],c/my%20main":                                 {addrs: "[::1]:7 [::2]:26379 c:26379", name: "my main", login: ":pw", own: ":"},
		"redis+sentinel://a/m?sentinel_password=x@y&sentinel_username=s&read_timeout=2s": {addrs: "a:26379", name: "m", login: ":", own: "s:x@y"},
	} {
		o, err := parseSentinel(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got := want
		got.addrs, got.login, got.own = strings.Join(o.SentinelAddrs, " "), o.Username+":"+o.Password, o.SentinelUsername+":"+o.SentinelPassword
		got.name, got.db, got.tls = o.MasterName, o.DB, o.TLSConfig != nil
		if got != want {
			t.Errorf("%s: got %+v", raw, got)
		}
	}
}

func TestParseCluster(t *testing.T) {
	for raw, want := range map[string][]string{
		"redis+cluster://a":                 {"a:6379"},
		"redis+cluster://me:pw@a:1,b,c:3/":  {"a:1", "b:6379", "c:3"},
		"rediss+cluster://[::1]:7,[::2]":    {"[::1]:7", "[::2]:6379"},
		"REDIS+CLUSTER://a,b?pool_size=100": {"a:6379", "b:6379"},
	} {
		o, err := parseCluster(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if !reflect.DeepEqual(o.Addrs, want) || strings.HasPrefix(raw, "rediss") != (o.TLSConfig != nil) || strings.Contains(raw, "me:pw") != (o.Password == "pw") {
			t.Errorf("%s: got %+v", raw, o)
		}
	}
}

// Whatever is wrong, it is named, and no password is part of the error; "secret" stands for it.
func TestManyFails(t *testing.T) {
	for raw, want := range map[string]string{
		"redis+sentinel://":                                             `host 1 of 1, "": it is empty`,
		"redis+sentinel://me:secret@a,,b/main":                          `host 2 of 3, "": it is empty`,
		"redis+sentinel://me:secret@a,b:x/main":                         `host 2 of 2, "b:x": port "x"`,
		"redis+sentinel://me:secret@a:99999/main":                       `port "99999"`,
		"redis+sentinel://a,::1/main":                                   "IPv6 in brackets",
		"redis+sentinel://me:secret@a,b":                                "no master name",
		"redis+sentinel://me:secret@a,b/":                               "no master name",
		"redis+sentinel://me:secret@a/main/x":                           `database number: "x"`,
		"redis+sentinel://me:secret@a/main/1/2":                         "the master name and a database number alone",
		"redis+sentinel://me:secret@a/%zz":                              "path",
		"redis+sentinel://me:secret@a/main?nonsense=1":                  "unexpected option: nonsense",
		"redis+sentinel://a/main?sentinel_password=secret&x=1":          "unexpected option: x",
		"redis+sentinel://a/main?sentinel_password=sec@secret&x":        "unexpected option: x",
		"redis+sentinel://a/main?password=secret":                       "unexpected option: password",
		"redis+sentinel://a/main?replica_only=true":                     "option replica_only",
		"redis+sentinel://a/main?route_randomly=true":                   "option route_randomly",
		"redis+sentinel://me:secret%zz@a/main":                          "not percent-encoded",
		"redis+sentinel://me:secret/?secret@a/main":                     "not percent-encoded",
		"redis+sentinel://me:secret@a/main?sentinel_password=secret%zz": "percent-encoded",
		"redis+cluster://me:secret@a,b/2":                               `no database numbers: leave out "/2"`,
		"redis+cluster://me:secret@a, b":                                "no name or address",
		"redis+cluster://me:secret@a?addr=b:1":                          "unexpected option: addr",
		"redis+cluster://me:secret@a?read_only=true":                    "option read_only",
		"redis+cluster://me:secret@a?pool_size=many":                    "pool_size",
		"redis+quorum://me:secret@a,b":                                  "scheme redis+quorum",
	} {
		client, err := Connect(raw, TLS{})
		if err == nil {
			_ = client.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v, want %q", raw, err, want)
		}
	}
	if _, err := Connect("redis+cluster://a,b", TLS{CA: "/none"}); err == nil || !strings.Contains(err.Error(), "not encrypted") {
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
		if got := Open(raw); got != want {
			t.Errorf("%s: shown as %s", raw, got)
		}
		if got := Redact(raw); strings.Contains(got, "secret") {
			t.Errorf("%s: redacted to %s", raw, got)
		}
	}
}
