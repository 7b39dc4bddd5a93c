package examples_test

// The imports of docs/flight.md, word for word; those below are of the tests.
import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/flight"
)

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/database"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// The code of docs/flight.md, word for word.

func price(ctx context.Context, client *holdfast.Client, rdb *redis.Client, product string) (string, error) {
	key := "price:" + product
	read := func(ctx context.Context) (string, flight.State, error) {
		text, err := rdb.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			return "", flight.Stale, nil
		}
		return text, flight.Fresh, err
	}
	compute := func(ctx context.Context, _ int64) (string, error) {
		text, err := askShop(ctx, product) // dear: nobody else asks for this product now
		if err != nil {
			return "", err
		}
		return text, rdb.Set(ctx, key, text, time.Minute).Err()
	}
	return flight.Do(ctx, client, key, read, compute)
}

type credentials struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh"` // good for one use
	Expires time.Time `json:"expires"`
}

func accessToken(ctx context.Context, client *holdfast.Client, rdb *redis.Client,
	refresh func(context.Context, credentials) (credentials, error)) (string, error) {
	var last credentials
	read := func(ctx context.Context) (credentials, flight.State, error) {
		text, err := rdb.Get(ctx, "{oauth}:token").Bytes()
		if err == nil {
			err = json.Unmarshal(text, &last)
		}
		return last, flight.StateOf(last.Expires, time.Minute), err
	}
	compute := func(ctx context.Context, token int64) (credentials, error) {
		next, err := refresh(ctx, last)
		if err != nil {
			return next, err
		}
		text, err := json.Marshal(next)
		if err != nil {
			return next, err
		}
		keys := []string{"{oauth}:fence", "{oauth}:token"}
		err = redis.NewScript(fence.RedisScript).Run(ctx, rdb, keys, token, "SET", text).Err()
		return next, fence.RedisError(err, "oauth", token)
	}
	found, err := flight.Do(ctx, client, "oauth", read, compute, flight.WithSharedErrors(5*time.Second))
	return found.Access, err
}

func page(ctx context.Context, client *holdfast.Client, rdb *redis.Client, url string,
	render func(ctx context.Context, url string) (string, error)) (string, error) {
	key := "page:" + url
	read := func(ctx context.Context) (string, flight.State, error) {
		both := rdb.Pipeline()
		text, left := both.Get(ctx, key), both.PTTL(ctx, key)
		if _, err := both.Exec(ctx); err != nil { // a cache that is away has no entry
			return "", flight.Stale, nil
		}
		return text.Val(), flight.StateOf(time.Now().Add(left.Val()), 10*time.Second), nil
	}
	compute := func(ctx context.Context, _ int64) (string, error) {
		text, err := render(ctx, url)
		if err == nil {
			rdb.Set(ctx, key, text, time.Minute) // without the cache, it is used all the same
		}
		return text, err
	}
	return flight.Do(ctx, client, key, read, compute, flight.WithFailOpen())
}

func dailyReport(ctx context.Context, client *holdfast.Client, db *sql.DB, day string,
	create func(ctx context.Context, day string) (string, error)) (string, error) {
	name := "report:" + day
	read := func(ctx context.Context) (text string, state flight.State, err error) {
		err = db.QueryRowContext(ctx, "SELECT text FROM reports WHERE day = $1", day).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			return "", flight.Stale, nil
		}
		return text, flight.Fresh, err
	}
	compute := func(ctx context.Context, token int64) (string, error) {
		text, err := create(ctx, day)
		if err != nil {
			return "", err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return "", err
		}
		defer tx.Rollback()
		if err := fence.SQL(ctx, tx, fence.PostgreSQL, name, token); err != nil {
			return "", err // errors.Is(err, fence.ErrLate): another has made it meanwhile
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO reports (day, text) VALUES ($1, $2)
			ON CONFLICT (day) DO UPDATE SET text = excluded.text`, day, text); err != nil {
			return "", err
		}
		return text, tx.Commit()
	}
	return flight.Do(ctx, client, name, read, compute)
}

type bucket interface {
	// get returns an object and its ETag, which is empty if there is none.
	get(ctx context.Context, name string) (data []byte, etag string, made time.Time, err error)
	// putIf stores an object if its ETag is still this one: If-Match, or If-None-Match: *.
	putIf(ctx context.Context, name, etag string, data []byte) error
}

func thumbnails(ctx context.Context, client *holdfast.Client, files bucket, album string,
	draw func(ctx context.Context, album string) ([]byte, error)) ([]byte, error) {
	name, seen := album+".zip", ""
	read := func(ctx context.Context) ([]byte, flight.State, error) {
		data, etag, made, err := files.get(ctx, name)
		seen = etag // read is called last right before compute
		return data, flight.StateOf(made.Add(24*time.Hour), time.Hour), err
	}
	compute := func(ctx context.Context, _ int64) ([]byte, error) {
		data, err := draw(ctx, album)
		if err != nil {
			return nil, err
		}
		return data, files.putIf(ctx, name, seen, data) // fails if another has stored meanwhile
	}
	return flight.Do(ctx, client, name, read, compute)
}

// shopCalls counts what askShop was asked.
var shopCalls atomic.Int64

func askShop(_ context.Context, product string) (string, error) {
	return fmt.Sprintf("%s costs %d", product, shopCalls.Add(1)), nil
}

// everywhere calls do on five hosts at once, four times each, and wants one answer.
func everywhere(t *testing.T, want string,
	do func(ctx context.Context, client *holdfast.Client, rdb *redis.Client) (string, error)) {
	t.Helper()
	server := redisserver.Start(t)
	var all sync.WaitGroup
	for range 5 {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		client, err := holdfast.New(redisstore.New(rdb), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		for range 4 {
			all.Go(func() {
				if got, err := do(t.Context(), client, rdb); got != want || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
	}
	all.Wait()
}

func TestFlightPrice(t *testing.T) {
	everywhere(t, "tea costs 1", func(ctx context.Context, client *holdfast.Client, rdb *redis.Client) (string, error) {
		return price(ctx, client, rdb, "tea")
	})
}

// All hosts have the new access token, and the refresh token is used once.
func TestFlightAccessToken(t *testing.T) {
	var used atomic.Int64
	var first sync.Once
	refresh := func(_ context.Context, last credentials) (credentials, error) {
		if n := used.Add(1); last.Refresh != "r0" || n > 1 {
			return last, fmt.Errorf("%q is used again", last.Refresh)
		}
		return credentials{"a1", "r1", time.Now().Add(time.Hour)}, nil
	}
	everywhere(t, "a1", func(ctx context.Context, client *holdfast.Client, rdb *redis.Client) (string, error) {
		first.Do(func() { rdb.Set(ctx, "{oauth}:token", `{"access": "a0", "refresh": "r0"}`, 0) })
		return accessToken(ctx, client, rdb, refresh)
	})
}

// A page is rendered once, and also while the server is away.
func TestFlightPage(t *testing.T) {
	var rendered atomic.Int64
	render := func(context.Context, string) (string, error) {
		return "rendered " + strconv.Itoa(int(rendered.Add(1))), nil
	}
	everywhere(t, "rendered 1", func(ctx context.Context, client *holdfast.Client, rdb *redis.Client) (string, error) {
		return page(ctx, client, rdb, "/", render)
	})
	gone := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = gone.Close() })
	client, err := holdfast.New(redisstore.New(gone), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if text, err := page(t.Context(), client, gone, "/", render); text != "rendered 2" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestFlightDailyReport(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("needs PostgreSQL: make proof PART=fence runs it")
	}
	db, err := sql.Open("pgx", database.StartPostgreSQL(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range []string{fence.PostgreSQL.Schema(), "CREATE TABLE reports (day text PRIMARY KEY, text text)"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	var created atomic.Int64
	everywhere(t, "report 1", func(ctx context.Context, client *holdfast.Client, _ *redis.Client) (string, error) {
		return dailyReport(ctx, client, db, "Monday", func(context.Context, string) (string, error) {
			return "report " + strconv.Itoa(int(created.Add(1))), nil
		})
	})
}

// A heap stands for a store of objects with conditional puts.
type heap struct {
	mu   sync.Mutex
	data []byte
	tag  int
	made time.Time
}

func (h *heap) get(context.Context, string) ([]byte, string, time.Time, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tag == 0 {
		return nil, "", time.Time{}, nil
	}
	return h.data, strconv.Itoa(h.tag), h.made, nil
}

var errChanged = errors.New("412 precondition failed")

func (h *heap) putIf(_ context.Context, _, etag string, data []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if has := h.tag; etag != strconv.Itoa(has) && (etag != "" || has != 0) {
		return errChanged
	}
	h.tag++
	h.data, h.made = data, time.Now()
	return nil
}

// The store refuses what a host that stood still puts late.
func TestFlightThumbnails(t *testing.T) {
	files, drawn := &heap{}, 0
	client := holdfasttest.New(t)
	draw := func(context.Context, string) ([]byte, error) {
		drawn++
		return fmt.Append(nil, "drawing ", drawn), nil
	}
	for range 2 {
		data, err := thumbnails(t.Context(), client, files, "cats", draw)
		if string(data) != "drawing 1" || err != nil {
			t.Errorf("got %q, %v", data, err)
		}
	}
	dogs := &heap{}
	_, err := thumbnails(t.Context(), client, dogs, "dogs", func(ctx context.Context, _ string) ([]byte, error) {
		return nil, dogs.putIf(ctx, "dogs.zip", "", nil) // as another host would
	})
	if !errors.Is(err, errChanged) {
		t.Errorf("a late put: %v", err)
	}
}
