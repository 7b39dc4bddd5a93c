// Package database starts real PostgreSQL and MariaDB servers for the tests of every module of this
// repository. It needs nothing but the standard library and the servers' programs.
//
//	srv := database.StartPostgreSQL(t) // ends with the test
//	db, err := sql.Open("pgx", srv.DSN)
//
// Each server listens on a free port of 127.0.0.1, with its files in a directory of its own. It
// does not wait for its disk. Neither program runs as root: for root they run as nobody. A server
// ends with the process that started it, on Linux even if that process is killed.
//
// The programs are looked for on PATH, and where Debian has them.
package database
