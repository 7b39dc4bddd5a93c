package database

import (
	"net"
	"os"
	"testing"
	"time"
)

// StartMariaDB runs a MariaDB until the test is over. If it does not start, or is not installed,
// StartMariaDB ends the test.
func StartMariaDB(tb testing.TB) *Server {
	tb.Helper()
	init := ""
	return start(tb, system{
		program: "mariadbd",
		setUp: func(s *Server) (err error) {
			init, err = s.write("init.sql", "CREATE DATABASE IF NOT EXISTS holdfast;\n"+
				"CREATE OR REPLACE USER holdfast@'%' IDENTIFIED BY '"+s.password+"';\n"+
				"GRANT ALL ON *.* TO holdfast@'%';\n"+
				"DROP USER IF EXISTS ''@'localhost';\n")
			if err != nil {
				return err
			}
			return s.setUp("mariadb-install-db", "--no-defaults", "--datadir="+s.dir+"/data", "--skip-test-db",
				"--auth-root-authentication-method=socket", "--innodb-flush-log-at-trx-commit=0")
		},
		args: func(s *Server, port string) []string {
			return []string{"--no-defaults", "--datadir=" + s.dir + "/data", "--tmpdir=" + s.dir,
				"--bind-address=127.0.0.1", "--port=" + port, "--socket=" + s.dir + "/socket",
				"--pid-file=" + s.dir + "/pid",
				"--init-file=" + init, "--skip-name-resolve", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0",
				"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"}
		},
		dsn: func(s *Server) string { return "holdfast:" + s.password + "@tcp(" + s.Addr + ")/holdfast" },
		ready: func(s *Server) bool {
			conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
			if err != nil {
				return false
			}
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			n, _ := conn.Read(make([]byte, 1)) // its greeting, which comes after the init file
			return n == 1
		},
		end: os.Kill,
	})
}
