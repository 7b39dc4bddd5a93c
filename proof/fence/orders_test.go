package fence_test

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/holdfast-go/holdfast/fence"
)

// together returns two holders of one lock, and the things that it guards.
func together(t *testing.T, db *database, how way, level sql.IsolationLevel, round int) (older, newer *holder) {
	t.Helper()
	for id := range thingsOfRound {
		db.exec(t, fmt.Sprintf("INSERT INTO things VALUES (%d, %d, 0, 0)", round, id))
	}
	return &holder{db: db, way: how, level: level, round: round, token: 17},
		&holder{db: db, way: how, level: level, round: round, token: 18}
}

// atOnce is for transactions that are not cut into steps.
func atOnce() {}

// The order that a token in each row misses: the new holder has written one row, and the late one
// writes another.
func TestTokenInEachRowMissesTheRowsThatTheNewHolderHasNotTouched(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		for i, level := range db.levels {
			for j, how := range []way{eachRow, first} {
				older, newer := together(t, db, how, level, 10*i+j)
				if _, err := older.write(t.Context(), 170, []int64{0}, atOnce); err != nil {
					t.Fatal(err)
				}
				// The old holder stands still here.
				if _, err := newer.write(t.Context(), 180, []int64{0}, atOnce); err != nil {
					t.Fatal(err)
				}
				_, touched := older.write(t.Context(), 171, []int64{0}, atOnce)
				_, untouched := older.write(t.Context(), 171, []int64{1}, atOnce)
				if !errors.Is(touched, fence.ErrLate) {
					t.Errorf("%v, %s: the row that the new holder wrote: %v", level, how, touched)
				}
				if refused := errors.Is(untouched, fence.ErrLate); refused != (how == first) {
					t.Errorf("%v, %s: the row that the new holder has not touched: %v", level, how, untouched)
				}
				want := state{0: 180, 1: 0, 2: 0}
				if how == eachRow {
					want[1] = 171 // the late write
				}
				if is, err := readThings(t.Context(), db, older.round); err != nil || !maps.Equal(is, want) {
					t.Errorf("%v, %s: %v, want %v: %v", level, how, is, want, err)
				}
			}
		}
	})
}
