package fence

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Dialect says which database a transaction belongs to.
type Dialect int

// The dialects, each with the oldest version that knows its statements.
const (
	PostgreSQL Dialect = iota + 1 // 9.5 or newer
	MySQL                         // MySQL and MariaDB, with InnoDB
	SQLite                        // 3.35 or newer
)

// statements are what a dialect sends. raise takes the name and the token, sets the largest token,
// and returns it. A dialect without RETURNING has a read: its raise takes the token twice and
// returns nothing, and read returns the largest token of the locked row.
type statements struct{ schema, raise, read string }

// The table's columns. raised_at is for operators alone: it tells which rows are old.
var dialects = map[Dialect]statements{
	PostgreSQL: {
		schema: `CREATE TABLE IF NOT EXISTS holdfast_fence (
	name      text PRIMARY KEY,
	token     bigint NOT NULL,
	raised_at timestamptz NOT NULL DEFAULT now()
)`,
		raise: `INSERT INTO holdfast_fence AS f (name, token) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET token = greatest(f.token, excluded.token), raised_at = now()
RETURNING f.token`,
	},

	// The name is binary: a collation would take "Order" and "order" for one name. The engine is
	// named, because others have no transactions.
	MySQL: {
		schema: `CREATE TABLE IF NOT EXISTS holdfast_fence (
	name      varbinary(1024) PRIMARY KEY,
	token     bigint NOT NULL,
	raised_at datetime NOT NULL DEFAULT CURRENT_TIMESTAMP
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
		raise: `INSERT INTO holdfast_fence (name, token) VALUES (?, ?)
ON DUPLICATE KEY UPDATE token = greatest(token, ?), raised_at = CURRENT_TIMESTAMP`,
		read: `SELECT token FROM holdfast_fence WHERE name = ? FOR UPDATE`,
	},

	SQLite: {
		schema: `CREATE TABLE IF NOT EXISTS holdfast_fence (
	name      text PRIMARY KEY NOT NULL,
	token     integer NOT NULL,
	raised_at text NOT NULL DEFAULT CURRENT_TIMESTAMP
) WITHOUT ROWID`,
		raise: `INSERT INTO holdfast_fence (name, token) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET token = max(token, excluded.token), raised_at = CURRENT_TIMESTAMP
RETURNING token`,
	},
}

// String returns the database's name.
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// Schema returns the statement that creates the table of the fences, unless it exists. It is "" for
// an unknown dialect.
func (d Dialect) Schema() string { return dialects[d].schema }

// SQL raises the fence of name to token, as the first statement of tx, and locks it until tx ends.
// If the storage has seen a larger token, SQL returns a *[LateError]. An equal token is accepted.
//
// After any error SQL has rolled tx back, so that nothing more can be written in it. The document
// of the package says what a caller does then.
func SQL(ctx context.Context, tx *sql.Tx, dialect Dialect, name string, token int64) error {
	largest, err := raiseToken(ctx, tx, dialect, name, token)
	if err == nil && token < largest {
		err = &LateError{Name: name, Token: token, Largest: largest}
	}
	if err != nil {
		_ = tx.Rollback() // the connection may be gone, and the transaction with it
	}
	return err
}

// raiseToken returns the largest token that the storage has seen, this one included.
func raiseToken(ctx context.Context, tx *sql.Tx, dialect Dialect, name string, token int64) (largest int64, err error) {
	if err := checkArguments(name, token); err != nil {
		return 0, err
	}
	s, known := dialects[dialect]
	if !known {
		return 0, fmt.Errorf("fence: unknown dialect %v", dialect)
	}
	if s.read == "" {
		err = tx.QueryRowContext(ctx, s.raise, name, token).Scan(&largest)
	} else if _, err = tx.ExecContext(ctx, s.raise, name, token, token); err == nil {
		err = tx.QueryRowContext(ctx, s.read, name).Scan(&largest)
	}
	if err != nil {
		return 0, fmt.Errorf("fence: raise %q to %d: %w", name, token, err)
	}
	if largest < token { // a column of 32 bits, without MySQL's strict mode
		return 0, fmt.Errorf("fence: raise %q to %d: the table stored %d: its column token must be a bigint", name,
			token, largest)
	}
	return largest, nil
}

const maxName = 1024 // bytes, as the names of locks

// checkArguments refuses names that a database would refuse, shorten or change, and tokens of no
// lease.
func checkArguments(name string, token int64) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("fence: the name has %d bytes, not 1 to %d", len(name), maxName)
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return fmt.Errorf("fence: the name %q is not UTF-8, or has the character 0", name)
	}
	return checkToken(token)
}

func checkToken(token int64) error {
	if token <= 0 || token >= 1<<53 {
		return fmt.Errorf("fence: the token is %d, not from 1 to 2^53-1", token)
	}
	return nil
}
