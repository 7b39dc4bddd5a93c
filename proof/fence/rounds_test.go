package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A way is how a transaction uses its token.
type way string

const (
	first   way = "fence.SQL first"
	later   way = "fence.SQL after reading"
	eachRow way = "token in each row"
	without way = "no token"
)

// A holder is one of a round's two. Both believe that they hold the lock.
type holder struct {
	db     *database
	way    way
	level  sql.IsolationLevel
	round  int
	token  int64
	reruns int
}

// things of a round, by id: the transaction that wrote each.
type state map[int64]int64

const thingsOfRound = 3

// write runs one transaction until it is committed or refused. The transaction reads all things of
// the round, and writes those of ids. It returns what was read.
func (h *holder) write(ctx context.Context, writer int64, ids []int64, step func()) (state, error) {
	for {
		read, err := h.attempt(ctx, writer, ids, step)
		if err == nil || !h.db.again(err) {
			return read, err
		}
		h.reruns++
	}
}

func (h *holder) attempt(ctx context.Context, writer int64, ids []int64, step func()) (state, error) {
	step()
	tx, err := h.db.BeginTx(ctx, &sql.TxOptions{Isolation: h.level})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	if h.way == first {
		if err := h.raise(ctx, tx, step); err != nil {
			return nil, err
		}
	}
	step()
	read, err := readThings(ctx, tx, h.round)
	if err != nil {
		return nil, err
	}
	if h.way == later {
		if err := h.raise(ctx, tx, step); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		step()
		if err := h.update(ctx, tx, writer, id); err != nil {
			return nil, err
		}
	}
	step()
	return read, tx.Commit()
}

func (h *holder) raise(ctx context.Context, tx *sql.Tx, step func()) error {
	step()
	return fence.SQL(ctx, tx, h.db.Dialect, lock(h.round), h.token)
}

func lock(round int) string { return "round:" + strconv.Itoa(round) }

func (h *holder) update(ctx context.Context, tx *sql.Tx, writer, id int64) error {
	where := fmt.Sprintf("round = %d AND id = %d", h.round, id)
	if h.way == eachRow {
		where += fmt.Sprintf(" AND token <= %d", h.token)
	}
	result, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE things SET writer = %d, token = %d WHERE %s", writer,
		h.token, where))
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return &fence.LateError{Token: h.token}
}

func readThings(ctx context.Context, db interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, round int) (state, error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT id, writer FROM things WHERE round = %d", round))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	read := state{}
	for rows.Next() {
		var id, writer int64
		if err := rows.Scan(&id, &writer); err != nil {
			return nil, err
		}
		read[id] = writer
	}
	return read, rows.Err()
}

// A tally is what was seen in some rounds.
type tally struct{ rounds, refused, waited, reruns, late int }

func (c tally) String() string {
	return fmt.Sprintf("%d rounds, %d holders refused, %d waits, %d transactions run again, %d late writes",
		c.rounds, c.refused, c.waited, c.reruns, c.late)
}

// playRound lets an old holder write twice, and a new one once. A late write is one that changes
// what the new holder has read: from then on, the new one alone may write.
func playRound(t *testing.T, db *database, how way, level sql.IsolationLevel, round int, rng *rand.Rand, sum *tally) {
	t.Helper()
	older, newer := together(t, db, how, level, round)
	some := func() (ids []int64) {
		for _, id := range rng.Perm(thingsOfRound)[:1+rng.IntN(thingsOfRound)] {
			ids = append(ids, int64(id))
		}
		return ids
	}
	oldWrites, newWrites := [][]int64{some(), some()}, some()
	var oldErr, newErr error
	var read state
	sum.waited += interleave(rng,
		func(step func()) {
			for i, ids := range oldWrites {
				if _, oldErr = older.write(t.Context(), 170+int64(i), ids, step); oldErr != nil {
					return
				}
			}
		},
		func(step func()) { read, newErr = newer.write(t.Context(), 180, newWrites, step) },
	)
	sum.rounds++
	sum.reruns += older.reruns + newer.reruns
	if errors.Is(oldErr, fence.ErrLate) {
		sum.refused++
	} else if oldErr != nil {
		t.Fatalf("round %d: the old holder: %v", round, oldErr)
	}
	if newErr != nil {
		t.Fatalf("round %d: the new holder: %v", round, newErr)
	}
	for _, id := range newWrites {
		read[id] = 180
	}
	is, err := readThings(t.Context(), db, round)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(is, read) {
		sum.late++
		if how == first {
			t.Errorf("round %d: the new holder left %v, and now it is %v", round, read, is)
		}
	}
}

// Two holders write in transactions, in random orders of their steps. No write of the old one comes
// after the new one has read, with the fence as the first statement. All other ways let late writes
// through: so the test can tell.
func TestRoundsOfAnOldAndANewHolder(t *testing.T) {
	seed := harness.Number(t, "HOLDFAST_SEED", rand.Uint64())
	t.Logf("HOLDFAST_SEED=%d", seed)
	everywhere(t, func(t *testing.T, db *database) {
		round := 0
		for _, level := range db.levels {
			for _, how := range []way{first, later, eachRow, without} {
				rng, sum := rand.New(rand.NewPCG(seed, 0)), tally{}
				for range rounds(how) {
					round++
					playRound(t, db, how, level, round, rng, &sum)
				}
				t.Logf("%v, %v, %s: %v", db.Dialect, level, how, sum)
				if harness.Thorough {
					judge(t, level, how, sum)
				}
			}
		}
	})
}

func rounds(how way) int {
	switch {
	case !harness.Thorough:
		return 10
	case how == first:
		return 1000
	}
	return 200 // enough to see late writes
}

// judge checks that the many rounds had what they are to show.
func judge(t *testing.T, level sql.IsolationLevel, how way, sum tally) {
	t.Helper()
	if how == first && (sum.refused == 0 || sum.waited == 0) {
		t.Errorf("%v, %s: no holder was late, or none waited: %v", level, how, sum)
	}
	if (how == eachRow || how == without) && sum.late == 0 {
		t.Errorf("%v, %s: no late write was seen, so the test sees none: %v", level, how, sum)
	}
}

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
