// Command fenced is a service that bills orders: HTTP in front, PostgreSQL behind, and holdfast so
// that each order is billed by one process at a time. Start as many as you like:
//
//	export REDIS_URL=redis://localhost:6379 DATABASE_URL=postgres://localhost/billing
//	export PAYMENTS_URL=http://localhost:9090/charges
//	go run ./examples/fenced :8080
//	curl -X POST localhost:8080/orders/42/bill
//
// A process may stand still between reading an order and writing the bill, for longer than its
// lease lasts. Another process then bills the order. When the first goes on, the database refuses
// what it writes, because its fencing token is late. The test stops a process to show that.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/redisstore"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: fenced ADDRESS")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends. Then it waits for the requests that are under way: what they hold must
// not go to another process while they work.
func run(ctx context.Context, addr string) error {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		// The error of ParseURL may show the password.
		return errors.New("REDIS_URL must look like redis://USER:PASSWORD@HOST:PORT/DB")
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	locks, err := holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrate(ctx, locks, db); err != nil {
		return err
	}

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("serving on", listener.Addr())
	s := &service{locks: locks, db: db, payments: os.Getenv("PAYMENTS_URL")}
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }, // its end ends waits for locks
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx)) // a charge ends within a minute
	}
}

// migrate makes the tables, in one process at a time.
func migrate(ctx context.Context, locks *holdfast.Client, db *sql.DB) error {
	return locks.Mutex("migration").Do(ctx, func(ctx context.Context) error {
		for _, statement := range []string{
			fence.PostgreSQL.Schema(),
			`CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, amount bigint NOT NULL, bill text)`,
		} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// A service bills orders.
type service struct {
	locks    *holdfast.Client
	db       *sql.DB
	payments string // the URL of the payment provider
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}/bill", func(w http.ResponseWriter, r *http.Request) {
		bill, err := s.bill(r.Context(), r.PathValue("id"))
		switch {
		case err == nil:
			fmt.Fprintln(w, bill)
		case errors.Is(err, sql.ErrNoRows):
			http.NotFound(w, r)
		case !fence.Refuse(w, err): // 409: the token is late
			log.Print(err)
			http.Error(w, "the order was not billed", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// bill returns the bill of an order, and makes it if there is none.
func (s *service) bill(ctx context.Context, order string) (bill string, err error) {
	lock := s.locks.Mutex("order:"+order, holdfast.WithTTL(2*time.Second), holdfast.WithWait(30*time.Second))
	err = lock.Do(ctx, func(ctx context.Context) error {
		lease, _ := holdfast.LeaseFrom(ctx)
		amount, made, err := s.open(ctx, lease, order)
		if err != nil || made != "" {
			bill = made
			return err
		}
		// From here on money moves. The end of the lease must not cut that. The fence decides
		// whether the bill counts.
		ctx = context.WithoutCancel(ctx)
		if bill, err = s.charge(ctx, order, amount); err != nil {
			return err
		}
		return s.save(ctx, lease, order, bill)
	})
	return bill, err
}

// open reads an order, behind the fence: what earlier holders wrote is there, and they write no
// more.
func (s *service) open(ctx context.Context, lease *holdfast.Lease, order string) (amount int64, bill string,
	err error) {
	err = s.fenced(ctx, lease, func(tx *sql.Tx) error {
		const query = "SELECT amount, coalesce(bill, '') FROM orders WHERE id = $1"
		return tx.QueryRowContext(ctx, query, order).Scan(&amount, &bill)
	})
	return amount, bill, err
}

// save writes the bill, unless a later holder has come.
func (s *service) save(ctx context.Context, lease *holdfast.Lease, order, bill string) error {
	return s.fenced(ctx, lease, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE orders SET bill = $2 WHERE id = $1", order, bill)
		return err
	})
}

// fenced runs f in a transaction under the lease's token.
func (s *service) fenced(ctx context.Context, lease *holdfast.Lease, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := fence.SQL(ctx, tx, fence.PostgreSQL, lease.Name(), lease.Token()); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// charge takes the money. The order is the provider's idempotency key: an order that is charged
// twice costs once.
func (s *service) charge(ctx context.Context, order string, amount int64) (bill string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.payments, strings.NewReader(fmt.Sprint(amount)))
	if err != nil {
		return "", err
	}
	request.Header.Set("Idempotency-Key", order)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("charge order %s: %s", order, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return string(text), err
}
