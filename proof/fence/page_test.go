package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// The code of docs/fencing.md, word for word.

func bill(ctx context.Context, db *sql.DB, lease *holdfast.Lease, order int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fence.SQL(ctx, tx, fence.PostgreSQL, lease.Name(), lease.Token()); err != nil {
		return err // errors.Is(err, fence.ErrLate): another holder has the lock
	}
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET billed = true WHERE id = $1", order); err != nil {
		return err
	}
	return tx.Commit()
}

func save(ctx context.Context, rdb *redis.Client, lease *holdfast.Lease, state string) error {
	keys := []string{"{order:42}:fence", "{order:42}"}
	err := redis.NewScript(fence.RedisScript).Run(ctx, rdb, keys, lease.Token(), "SET", state).Err()
	return fence.RedisError(err, lease.Name(), lease.Token())
}

func put(db *sql.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := store(r, db)
		if err != nil && !fence.Refuse(w, err) { // 409: late; 428: no token
			http.Error(w, "the order was not saved", http.StatusInternalServerError)
		}
	}
}

func store(r *http.Request, db *sql.DB) error {
	token, err := fence.FromRequest(r)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(r.Context(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	name := "order:" + r.PathValue("id") // by the service: a client may not choose its fence
	if err := fence.SQL(r.Context(), tx, fence.SQLite, name, token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(r.Context(), "UPDATE orders SET billed = true WHERE id = ?",
		r.PathValue("id")); err != nil {
		return err
	}
	return tx.Commit()
}

// leases returns two leases of one lock. The first is given back, as if it had ended: its token is
// the smaller one.
func leases(t *testing.T) (late, present *holdfast.Lease) {
	t.Helper()
	client := holdfasttest.New(t)
	late, err := client.Mutex("order:42").Lock(t.Context())
	fatal.If(t, err)
	fatal.If(t, late.Release())
	if present, err = client.Mutex("order:42").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	return late, present
}

const orders = "CREATE TABLE orders (id bigint PRIMARY KEY, billed boolean NOT NULL)"

func TestPageBill(t *testing.T) {
	db := openPostgreSQL(t)
	db.exec(t, orders)
	db.exec(t, "INSERT INTO orders VALUES (42, false)")
	late, present := leases(t)
	fatal.If(t, bill(t.Context(), db.DB, present, 42))
	if err := bill(t.Context(), db.DB, late, 42); !errors.Is(err, fence.ErrLate) {
		t.Errorf("the late holder: %v", err)
	}
}

func TestPageSave(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer rdb.Close()
	late, present := leases(t)
	fatal.If(t, save(t.Context(), rdb, present, "billed"))
	if err := save(t.Context(), rdb, late, "new"); !errors.Is(err, fence.ErrLate) {
		t.Errorf("the late holder: %v", err)
	}
	if state := rdb.Get(t.Context(), "{order:42}").Val(); state != "billed" {
		t.Errorf("the order is %s", state)
	}
}

// The command that the page shows for redis-cli, as it stands there.
func TestPageRedisCommandRuns(t *testing.T) {
	page, err := os.ReadFile("../../docs/fencing.md")
	fatal.If(t, err)
	shown := regexp.MustCompile("(?s)```redis\r?\n(.*?)\r?\n```").FindAllStringSubmatch(string(page), -1)
	if len(shown) != 1 {
		t.Fatalf("the page has %d commands", len(shown))
	}
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer rdb.Close()
	send := func(token string) error {
		var args []any
		for word := range strings.FieldsSeq(shown[0][1]) {
			switch word {
			case "SCRIPT":
				word = fence.RedisScript
			case "TOKEN":
				word = token
			}
			args = append(args, word)
		}
		return fence.RedisError(rdb.Do(t.Context(), args...).Err(), "order:42", 1)
	}
	fatal.If(t, send("1795486865300377"))
	if err := send("1795486865300376"); !errors.Is(err, fence.ErrLate) {
		t.Errorf("the late holder: %v", err)
	}
	if state := rdb.Get(t.Context(), "{order:42}").Val(); state != "billed" {
		t.Errorf("the order is %s", state)
	}
}

// Over HTTP a late holder gets the same error as beside the database.
func TestPagePut(t *testing.T) {
	db := openSQLite(t)
	db.exec(t, orders)
	db.exec(t, "INSERT INTO orders VALUES (42, false)")
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{id}", put(db.DB))
	server := httptest.NewServer(mux)
	defer server.Close()
	late, present := leases(t)
	send := func(token int64) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/orders/42", nil)
		fatal.If(t, err)
		if token != 0 {
			fence.SetHeader(request.Header, token)
		}
		resp, err := server.Client().Do(request)
		fatal.If(t, err)
		defer resp.Body.Close()
		return resp.StatusCode, fence.CheckResponse(resp, "order:42", token)
	}
	if status, err := send(present.Token()); status != http.StatusOK || err != nil {
		t.Errorf("the holder: %d, %v", status, err)
	}
	var refused *fence.LateError
	want := fence.LateError{Name: "order:42", Token: late.Token(), Largest: present.Token()}
	if status, err := send(late.Token()); status != http.StatusConflict || !errors.As(err, &refused) ||
		*refused != want {
		t.Errorf("the late holder: %d, %v", status, err)
	}
	if status, err := send(0); status != http.StatusPreconditionRequired || err != nil {
		t.Errorf("a client without a token: %d, %v", status, err)
	}
	db.exec(t, "DROP TABLE orders")
	if status, err := send(present.Token()); status != http.StatusInternalServerError || err != nil {
		t.Errorf("without the table: %d, %v", status, err)
	}
}
