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
	s := newServer(tb)
	init := s.write("init.sql", "CREATE DATABASE IF NOT EXISTS holdfast;\n"+
		"CREATE OR REPLACE USER holdfast@'%' IDENTIFIED BY '"+s.password+"';\n"+
		"GRANT ALL ON *.* TO holdfast@'%';\n"+
		"DROP USER IF EXISTS ''@'localhost';\n")
	s.setUp("mariadb-install-db", "--no-defaults", "--datadir="+s.dir+"/data", "--skip-test-db",
		"--auth-root-authentication-method=socket", "--innodb-flush-log-at-trx-commit=0")
	ready := func() bool {
		conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		n, _ := conn.Read(make([]byte, 1)) // its greeting, which comes after the init file
		return n == 1
	}
	s.run(os.Kill, ready, "mariadbd", func(port string) []string {
		return []string{"--no-defaults", "--datadir=" + s.dir + "/data", "--tmpdir=" + s.dir,
			"--bind-address=127.0.0.1", "--port=" + port, "--socket=" + s.dir + "/socket",
			"--pid-file=" + s.dir + "/pid",
			"--init-file=" + init, "--skip-name-resolve", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0",
			"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"}
	})
	s.DSN = "holdfast:" + s.password + "@tcp(" + s.Addr + ")/holdfast"
	return s
}
