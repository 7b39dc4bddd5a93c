package server

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

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
