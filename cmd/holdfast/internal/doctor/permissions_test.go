package doctor

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/redis/go-redis/v9"
)

// forPeopleOnly are the operations of SECURITY.md that no program needs to hold a lock.
var forPeopleOnly = []string{"list", "inspect", "break", "evict", "force break", "deadlocks", "queue"}

// The commands are those of the table in SECURITY.md.
func TestDocsPermissions(t *testing.T) {
	page, err := os.ReadFile("../../../../SECURITY.md")
	fatal.If(t, err)
	documented := map[string]neededLevel{}
	for _, row := range regexp.MustCompile("(?m)^\\| `\\+([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|$").FindAllStringSubmatch(string(page), -1) {
		operations := strings.Split(row[2]+", "+row[3], ", ")
		operations = slices.DeleteFunc(operations, func(o string) bool { return o == "nothing" || o == "not used" })
		kind := forLocks
		switch {
		case len(operations) == 0:
			kind = forWaking
		case !slices.ContainsFunc(operations, func(o string) bool { return !slices.Contains(forPeopleOnly, o) }):
			kind = forPeople
		}
		documented[strings.ReplaceAll(row[1], `\`, "")] = kind
	}
	known := map[string]neededLevel{}
	for _, p := range permissions {
		known[p.command] = p.need
	}
	if !maps.Equal(documented, known) {
		t.Errorf("SECURITY.md has %v,\ndoctor has %v", documented, known)
	}
}

// smallest is the user of SECURITY.md without one command.
func smallest(t *testing.T, srv *redisserver.Server, without string, more ...string) string {
	t.Helper()
	rule := []any{"ACL", "SETUSER", "u", "reset", "on", ">pw", "~app:*", "resetchannels", "&app:*", "-@all"}
	for _, p := range permissions {
		if p.command != without && (!p.cluster || p.command == "cluster|slots") {
			rule = append(rule, "+"+p.command)
		}
	}
	for _, word := range more {
		rule = append(rule, word)
	}
	if _, err := srv.Do(rule...); err != nil {
		t.Fatal(err)
	}
	return "redis://u:pw@" + srv.Addr()
}

// Each command that is missing is found, by itself, with and without ACL DRYRUN.
func TestPermissionsMissing(t *testing.T) {
	srv := redisserver.Start(t, durable...)
	if _, err := srv.Do("ACL", "DRYRUN", "default", "PING"); err != nil {
		t.Skip("the server has no ACL DRYRUN: ", err)
	}
	for _, w := range permissions {
		if w.cluster {
			continue
		}
		for how, more := range map[string][]string{"asked": {"+acl|whoami", "+acl|dryrun"}, "tried": nil} {
			t.Run(w.command+" "+how, func(t *testing.T) {
				p, report := examinePermissions(t, smallest(t, srv, w.command, more...))
				got := slices.Sorted(maps.Keys(p.denied))
				untried := how == "tried" && (w.command == "subscribe" || w.command == "unsubscribe")
				switch {
				case untried: // only a connection for messages shows it: see the check of messages
				case how == "tried" && (w.command == "eval" || w.command == "del"):
					if !slices.Contains(got, w.command) ||
						len(findingsOf(report, Unknown, "permissions", "getset, hset")) == 0 {
						t.Errorf("got %v, %v", got, p.findings)
					}
				case !slices.Equal(got, []string{w.command}):
					t.Errorf("got %v, want %s", got, w.command)
				}
				level := Note
				if w.need == forLocks {
					level = Danger
				}
				if !untried {
					want(t, report, level, "permissions", "refused: "+w.command, "+"+w.command)
				}
			})
		}
	}
	if n, err := srv.Do("DBSIZE"); n != int64(0) {
		t.Errorf("%v keys are left, %v", n, err)
	}
}

// A user without the keys or the channels of the prefix is told the pattern.
func TestPermissionsPatterns(t *testing.T) {
	srv := redisserver.Start(t, durable...)
	for _, more := range [][]string{{"+acl|whoami", "+acl|dryrun"}, nil} { // asked, and tried
		_, report := examinePermissions(t, smallest(t, srv, "", append(slices.Clone(more), "resetkeys", "~other:*")...))
		want(t, report, Danger, "permissions", "~app:*")
		_, report = examinePermissions(t, smallest(t, srv, "", append(slices.Clone(more), "resetchannels")...))
		want(t, report, Note, "permissions", "&app:*")
	}
}

// The smallest user is enough, also where it cannot ask for its permissions.
func TestExamineSmallestUser(t *testing.T) {
	long(t)
	srv := redisserver.Start(t, durable...)
	report := examineServer(t, smallest(t, srv, ""))
	for _, check := range []string{"eviction", "persistence", "permissions", "lock", "messages"} {
		wantNone(t, report, Danger, check)
		wantNone(t, report, Unknown, check)
	}
	want(t, report, OK, "permissions", "by trying")
	want(t, examineServer(t, smallest(t, srv, "eval")), Unknown, "lock", "no permission for eval")
	want(t, examineServer(t, smallest(t, srv, "time", "-zadd")), Danger, "permissions", "refused: time, zadd")
	want(t, examineServer(t, smallest(t, srv, "zadd")), Danger, "permissions", "ACL SETUSER", "+zadd")
	want(t, examineServer(t, smallest(t, srv, "subscribe")), Note, "messages", "NOPERM")
}

// examinePermissions examines nothing but the permissions.
func examinePermissions(t *testing.T, url string) (*serverCheck, Report) {
	t.Helper()
	rdb, err := server.Connect(url, server.TLS{})
	fatal.If(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	e := &examination{target: Target{URL: url, Prefix: "app"}, prefix: "app:doctor-test"}
	p := e.newServerCheck("server", rdb.(*redis.Client))
	p.permissions(t.Context())
	return p, Report{Findings: p.findings}
}
