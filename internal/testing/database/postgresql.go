package database

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// StartPostgreSQL runs a PostgreSQL until the test is over. If it does not start, or is not
// installed, StartPostgreSQL ends the test.
func StartPostgreSQL(tb testing.TB) *Server {
	tb.Helper()
	s := newServer(tb)
	s.setUp("initdb", "--pgdata=data", "--username=holdfast", "--pwfile="+s.write("password", s.password),
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
	ready := func() bool {
		// The eighth line of this file is the state; pg_ctl waits for it too.
		text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
		lines := strings.Split(string(text), "\n")
		return err == nil && len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
	}
	s.run(quit, ready, "postgres", func(port string) []string {
		return []string{"-D", "data", "-h", "127.0.0.1", "-p", port, "-k", "", "-F", "-N", "50",
			"-c", "shared_buffers=16MB", "-c", "deadlock_timeout=20ms"} // a second, else
	})
	s.DSN = "postgres://holdfast:" + s.password + "@" + s.Addr + "/postgres?sslmode=disable"
	return s
}
