package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// raise runs a transaction that raises a fence and nothing else.
func (db *database) raise(t *testing.T, name string, token int64) error {
	t.Helper()
	tx := db.begin(t, sql.LevelDefault)
	if err := fence.SQL(t.Context(), tx, db.Dialect, name, token); err != nil {
		if _, after := tx.ExecContext(t.Context(), "DELETE FROM things"); !errors.Is(after, sql.ErrTxDone) {
			t.Errorf("after %q, the transaction goes on: %v", err, after)
			_ = tx.Rollback()
		}
		return err
	}
	return tx.Commit()
}

func (db *database) largest(t *testing.T, name string) (token int64) {
	t.Helper()
	mark := "?"
	if db.Dialect == fence.PostgreSQL {
		mark = "$1"
	}
	if err := db.QueryRowContext(t.Context(), "SELECT token FROM holdfast_fence WHERE name = "+mark,
		name).Scan(&token); err != nil {
		t.Fatal(err)
	}
	return token
}

const micros = 1_795_000_000_000_000 // a token of holdfast, more than 32 bits have

// sentTokens are tokens in the order in which they come, and the largest that the storage has then.
var sentTokens = []struct {
	what           string
	token, largest int64
}{
	{"the first", micros + 17, micros + 17},
	{"an equal one", micros + 17, micros + 17},
	{"a larger one", micros + 19, micros + 19},
	{"a late one", micros + 18, micros + 19},
	{"a late one again", micros + 17, micros + 19},
	{"one that is much too small", 1, micros + 19},
	{"an equal one after late ones", micros + 19, micros + 19},
	{"the largest that there is", 1<<53 - 1, 1<<53 - 1},
	{"one that is smaller by one", 1<<53 - 2, 1<<53 - 1},
}

// checkOutcome compares the error of a token with what it must be.
func checkOutcome(t *testing.T, what string, err error, token, largest int64) {
	t.Helper()
	var late *fence.LateError
	switch {
	case token == largest && err != nil:
		t.Errorf("%s, %d: %v", what, token, err)
	case token < largest && (!errors.As(err, &late) || !errors.Is(err, fence.ErrLate)):
		t.Errorf("%s, %d: %v, want a LateError", what, token, err)
	case late != nil && *late != fence.LateError{Name: "order:42", Token: token, Largest: largest}:
		t.Errorf("%s: %+v", what, late)
	}
}

func TestSQLRefusesSmallerTokensAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		for _, test := range sentTokens {
			err := db.raise(t, "order:42", test.token)
			checkOutcome(t, test.what, err, test.token, test.largest)
			if has := db.largest(t, "order:42"); has != test.largest {
				t.Errorf("%s, %d: the fence is at %d, want %d", test.what, test.token, has, test.largest)
			}
		}
	})
}

// Names are compared byte by byte, and none is shortened.
func TestSQLNamesAreDistinct(t *testing.T) {
	long := strings.Repeat("é", 511) // 1022 bytes
	names := []string{"order", "Order", "ORDER", "order ", " order", "örder", "o\u0308rder", "order\t", "ordeŕ", "'",
		`\`, `"; --`, "%", long, long + "a", long + "ab"}
	everywhere(t, func(t *testing.T, db *database) {
		for i, name := range names {
			if err := db.raise(t, name, 1000-int64(i)); err != nil {
				t.Errorf("%.20q has the fence of another: %v", name, err)
			}
		}
		for i, name := range names {
			if err := db.raise(t, name, 1000-int64(i)-1); !errors.Is(err, fence.ErrLate) {
				t.Errorf("%.20q has no fence: %v", name, err)
			}
		}
	})
}

// Arguments that no lease has are refused, and so is what follows in the transaction.
func TestSQLWrongArguments(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		for _, test := range []struct {
			name  string
			token int64
			says  string
		}{
			{"", 1, "0 bytes"},
			{strings.Repeat("x", 1025), 1, "1025 bytes"},
			{"a\x00b", 1, "character 0"},
			{"a\xff", 1, "UTF-8"},
			{"a", 0, "the token is 0"},
			{"a", -1, "the token is -1"},
			{"a", 1 << 53, "the token is 9007199254740992"},
		} {
			if err := db.raise(t, test.name, test.token); err == nil || errors.Is(err, fence.ErrLate) ||
				!strings.Contains(err.Error(), test.says) {
				t.Errorf("%.10q, %d: %v", test.name, test.token, err)
			}
		}
		tx := db.begin(t, sql.LevelDefault)
		if err := fence.SQL(t.Context(), tx, fence.Dialect(9), "a", 1); err == nil ||
			!strings.Contains(err.Error(), "Dialect(9)") {
			t.Error(err)
		}
		if err := tx.Commit(); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("the transaction goes on: %v", err)
		}
	})
}

// Without its table the fence fails, and nothing is written behind it.
func TestSQLWithoutTable(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		db.exec(t, "DROP TABLE holdfast_fence")
		if err := db.raise(t, "order:42", 17); err == nil || errors.Is(err, fence.ErrLate) {
			t.Errorf("got %v", err)
		}
		db.exec(t, db.Schema())
		db.exec(t, db.Schema()) // does no harm
		fatal.If(t, db.raise(t, "order:42", 17))
	})
}

// The caller's context bounds the wait for the transaction of another holder. The driver of SQLite
// does not look at it while it waits: there the busy timeout alone counts.
func TestSQLContextEndsTheWait(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		older := db.begin(t, sql.LevelDefault)
		fatal.If(t, fence.SQL(t.Context(), older, db.Dialect, "order:42", 17))
		newer := db.begin(t, sql.LevelDefault)
		if db.Dialect == fence.SQLite {
			if _, err := newer.ExecContext(t.Context(), "PRAGMA busy_timeout = 1"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err := fence.SQL(ctx, newer, db.Dialect, "order:42", 18)
		if err == nil || errors.Is(err, fence.ErrLate) {
			t.Errorf("got %v", err)
		}
		fatal.If(t, older.Commit())
		fatal.If(t, db.raise(t, "order:42", 18))
	})
}

// The statements of the package's document, which delete rows that are old.
func TestRetention(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		longAgo, month := "CURRENT_TIMESTAMP - INTERVAL '31' DAY", "CURRENT_TIMESTAMP - INTERVAL '30' DAY"
		if db.Dialect == fence.SQLite {
			longAgo, month = "datetime('now', '-31 days')", "datetime('now', '-30 days')"
		}
		for _, name := range []string{"old", "older", "new"} {
			fatal.If(t, db.raise(t, name, 17))
		}
		db.exec(t, "UPDATE holdfast_fence SET raised_at = "+longAgo+" WHERE token = 17")
		for name, token := range map[string]int64{"old": 17, "new": 18} { // an equal token renews the row too
			fatal.If(t, db.raise(t, name, token))
		}
		result, err := db.ExecContext(t.Context(), "DELETE FROM holdfast_fence WHERE raised_at < "+month)
		fatal.If(t, err)
		if n, err := result.RowsAffected(); n != 1 || err != nil {
			t.Errorf("%d rows were deleted, want the one of older: %v", n, err)
		}
	})
}
