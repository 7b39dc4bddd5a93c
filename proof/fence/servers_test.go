package fence_test

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// A column of 32 bits makes all tokens equal. SQL sees that, in both modes of the server.
func TestMariaDBSmallColumnMakesTokensEqual(t *testing.T) {
	db := openMariaDB(t)
	db.exec(t, "DROP TABLE holdfast_fence")
	db.exec(t, "CREATE TABLE holdfast_fence (name varbinary(1024) PRIMARY KEY, token int NOT NULL, raised_at datetime)")
	conn, err := db.Conn(t.Context())
	fatal.If(t, err)
	defer conn.Close()
	const token = 1_795_000_000_000_000 // microseconds, in 2026
	for _, test := range []struct{ mode, says string }{
		{"", "stored 2147483647"}, // the largest number there, in place of the token
		{"STRICT_TRANS_TABLES", "Out of range"},
	} {
		if _, err := conn.ExecContext(t.Context(), "SET sql_mode = ?", test.mode); err != nil {
			t.Fatal(err)
		}
		tx, err := conn.BeginTx(t.Context(), nil)
		fatal.If(t, err)
		err = fence.SQL(t.Context(), tx, db.Dialect, "order:42", token)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("mode %q: got %v, want %q", test.mode, err, test.says)
		}
	}
}

// The database ends the transaction of a holder that stands still behind its fence, and the next
// holder goes on.
func TestHolderThatStopsInsideItsTransaction(t *testing.T) {
	for name, test := range map[string]struct {
		open func(*testing.T) *database
		set  string
	}{
		"PostgreSQL": {openPostgreSQL, "SET idle_in_transaction_session_timeout = '300ms'"},
		"MariaDB":    {openMariaDB, "SET idle_transaction_timeout = 1"},
	} {
		t.Run(name, func(t *testing.T) {
			db := test.open(t)
			conn, err := db.Conn(t.Context())
			fatal.If(t, err)
			defer conn.Close()
			if _, err := conn.ExecContext(t.Context(), test.set); err != nil {
				t.Fatal(err)
			}
			older, err := conn.BeginTx(t.Context(), nil)
			fatal.If(t, err)
			defer func() { _ = older.Rollback() }()
			fatal.If(t, fence.SQL(t.Context(), older, db.Dialect, "order:42", 17))
			if err := db.raise(t, "order:42", 18); err != nil { // waits for the database to end the other
				t.Errorf("the new holder: %v", err)
			}
			if _, err := older.ExecContext(t.Context(), "INSERT INTO things VALUES (1, 1, 1, 1)"); err == nil {
				t.Error("the old holder's transaction goes on")
			}
			if err := older.Commit(); err == nil || errors.Is(err, sql.ErrTxDone) {
				t.Errorf("the old holder's commit: %v", err)
			}
		})
	}
}

// patience is how long a step may take until it counts as one that waits for another's. It judges
// nothing: a step that is slow makes another order, and no order may do harm.
const patience = 2 * time.Millisecond

// interleave runs functions that call step before each of their steps. It lets them go on one at a
// time, in an order that rng draws. While a function waits inside a step, the others go on. The
// result is how often that was so.
func interleave(rng *rand.Rand, functions ...func(step func())) (waited int) {
	type event struct {
		function int
		over     bool
	}
	events, turns := make(chan event), make([]chan struct{}, len(functions))
	for i, f := range functions {
		turns[i] = make(chan struct{})
		go func() {
			f(func() {
				events <- event{function: i}
				<-turns[i]
			})
			events <- event{function: i, over: true}
		}()
	}
	var parked []int // functions that stand before a step
	running := len(functions)
	fresh := running // of the running ones, those that may not wait for another
	for running > 0 || len(parked) > 0 {
		var late <-chan time.Time // never, if there is nothing else to do
		switch {
		case len(parked) > 0 && fresh > 0:
			late = time.After(patience)
		case len(parked) > 0:
			late = time.After(0)
		}
		select {
		case e := <-events:
			running--
			fresh = max(0, fresh-1)
			if !e.over {
				parked = append(parked, e.function)
			}
			continue
		case <-late:
			waited += fresh
			fresh = 0
		}
		next := rng.IntN(len(parked))
		i := parked[next]
		parked = slices.Delete(parked, next, next+1)
		running++
		fresh++
		turns[i] <- struct{}{}
	}
	return waited
}
