package fence_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/fence"
	servers "github.com/holdfast-go/holdfast/internal/testing/database"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/proof/harness"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// A database belongs to one test. It has the fences' table, and a table of things that are guarded.
type database struct {
	*sql.DB
	fence.Dialect
	levels []sql.IsolationLevel
	again  func(error) bool // whether a transaction did not fit beside another, and must run again
}

// things are guarded by a lock for each round. writer is the transaction that wrote a thing last.
// token is for the fence that is none: a token in each row.
const things = `CREATE TABLE things (round bigint, id bigint, writer bigint, token bigint, PRIMARY KEY (round, id))`

func everywhere(t *testing.T, test func(*testing.T, *database)) {
	t.Run("SQLite", func(t *testing.T) { test(t, openSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, openPostgreSQL(t)) })
	t.Run("MariaDB", func(t *testing.T) { test(t, openMariaDB(t)) })
}

func openSQLite(t *testing.T) *database {
	t.Helper()
	file := filepath.ToSlash(filepath.Join(t.TempDir(), "things.db"))
	// Readers do not block writers, nobody waits for the disk, and a lock may take half a minute.
	dsn := "file:" + file + "?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=busy_timeout(30000)"
	return opened(t, "sqlite", dsn, &database{
		Dialect: fence.SQLite,
		levels:  []sql.IsolationLevel{sql.LevelDefault}, // which is serializable
		again: func(err error) bool {
			var of *sqlite.Error
			return errors.As(err, &of) && of.Code()&0xff == 5 // SQLITE_BUSY, and those derived from it
		},
	})
}

func openPostgreSQL(t *testing.T) *database {
	t.Helper()
	harness.Long(t) // PostgreSQL or MariaDB
	return opened(t, "pgx", servers.StartPostgreSQL(t).DSN, &database{
		Dialect: fence.PostgreSQL,
		levels:  []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		again: func(err error) bool {
			var of *pgconn.PgError
			return errors.As(err, &of) && (of.Code == "40001" || of.Code == "40P01") // cannot serialize, deadlock
		},
	})
}

func openMariaDB(t *testing.T) *database {
	t.Helper()
	harness.Long(t) // PostgreSQL or MariaDB
	return opened(t, "mysql", servers.StartMariaDB(t).DSN, &database{
		Dialect: fence.MySQL,
		levels:  []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		again: func(err error) bool {
			var of *mysql.MySQLError
			return errors.As(err, &of) && of.Number == 1213 // deadlock
		},
	})
}

// opened makes the tables of db, and closes it with the test.
func opened(t *testing.T, driver, dsn string, db *database) *database {
	t.Helper()
	pool, err := sql.Open(driver, dsn)
	fatal.If(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxIdleConns(8)
	db.DB = pool
	db.exec(t, db.Schema())
	db.exec(t, things)
	return db
}

func (db *database) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// begin begins a transaction, which the test's end rolls back.
func (db *database) begin(t *testing.T, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	fatal.If(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}
