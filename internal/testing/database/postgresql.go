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
	return start(tb, system{
		program: "postgres",
		setUp: func(s *Server) error {
			secret, err := s.write("password", s.password)
			if err != nil {
				return err
			}
			return s.setUp("initdb", "--pgdata=data", "--username=holdfast", "--pwfile="+secret,
				"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
		},
		args: func(_ *Server, port string) []string {
			return []string{"-D", "data", "-h", "127.0.0.1", "-p", port, "-k", "", "-F", "-N", "50",
				"-c", "shared_buffers=16MB", "-c", "deadlock_timeout=20ms"} // a second, else
		},
		dsn: func(s *Server) string {
			return "postgres://holdfast:" + s.password + "@" + s.Addr + "/postgres?sslmode=disable"
		},
		ready: func(s *Server) bool {
			// The eighth line of this file is the state; pg_ctl waits for it too.
			text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
			lines := strings.Split(string(text), "\n")
			return err == nil && len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
		},
		end: quit,
	})
}
