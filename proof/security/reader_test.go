package security_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A process that has the text of a ticket, and may run the scripts, can go on with the hold beside
// the process that attached it, with the same token. It can release the hold, and the other process
// is told.
func TestTicketReadActsAsHolder(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	ticket, err := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n")).Detach()
	fatal.If(t, err)
	attach := func() *holdfast.Lease {
		t.Helper()
		client := harness.Locker(t, srv.Addr(), nil)
		var lease *holdfast.Lease
		err := harness.Answered(t, func() (err error) { lease, err = client.Attach(t.Context(), ticket); return err })
		fatal.If(t, err)
		return lease
	}
	meant, thief := attach(), attach()
	if meant.Token() != thief.Token() || meant.Err() != nil || thief.Err() != nil {
		t.Errorf("tokens %d and %d; %v and %v", meant.Token(), thief.Token(), meant.Err(), thief.Err())
	}
	harness.Release(t, thief)
	if err := harness.Checked(t, meant); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("released by another process: %v", err)
	}
}

// Neither the log nor an event nor an error has the ticket, or the id of its hold.
func TestTicketIsNotLogged(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	var logged bytes.Buffer // the handler writes one record at a time
	logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	observe := func(event holdfast.Event) { logger.Info("event", "event", event) }
	config := &holdfast.Config{Logger: logger, Observer: harness.Observer(observe)}
	client := harness.Locker(t, srv.Addr(), config)
	lease := harness.Lock(t, client.Mutex("n"))
	id := lease.Owner()
	ticket, err := lease.Detach()
	fatal.If(t, err)
	attached, err := client.Attach(t.Context(), ticket)
	fatal.If(t, err)
	harness.Release(t, attached)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rest := harness.Locker(t, srv.Addr(), &holdfast.Config{Prefix: "other"})
	away := harness.Locker(t, "127.0.0.1:1", nil, func(o *redis.Options) { o.MaxRetries = -1 })
	for _, err := range []error{
		harness.Given(client.Attach(t.Context(), ticket)), harness.Given(client.Attach(ctx, ticket)),
		harness.Given(client.Attach(t.Context(), ticket+"x")), harness.Given(rest.Attach(t.Context(), ticket)),
		harness.Given(away.Attach(t.Context(), ticket)),
	} {
		if err == nil {
			t.Fatal("attached")
		}
		logger.Info("error", "err", err)
	}
	if err := client.Close(); err != nil { // the log is written in the background until then
		t.Error(err)
	}
	if text := logged.String(); strings.Contains(text, id) || strings.Contains(text, string(ticket[20:60])) {
		t.Errorf("logged: %s", text)
	}
}

// A client that may read the keys sees the id and the token of a hold, and can do nothing with
// them. Nor can it with a ticket, in which the id stands in plain.
func TestKeyReaderChangesNothing(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	as := grant(t, srv, "reader", "holdfast", "@read")
	held := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n"))
	rdb := harness.Client(t, srv.Addr(), as)
	state := rdb.Get(t.Context(), harness.KeyOf("n")).Val()
	if !strings.Contains(state, held.Owner()) || !strings.Contains(state, strconv.FormatInt(held.Token(), 10)) {
		t.Fatalf("read %q, not the hold", state)
	}
	passed := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("passed"))
	ticket, err := passed.Detach()
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(ticket), ".")
	if body, err := base64.RawURLEncoding.DecodeString(text); !strings.Contains(string(body), passed.Owner()) {
		t.Errorf("id %s is not in %q: %v", passed.Owner(), body, err)
	}
	reader := harness.Locker(t, srv.Addr(), nil, as)
	for op, do := range map[string]func() error{
		"break":  func() error { return reader.Break(t.Context(), "n", held.Token()) },
		"lock":   func() error { return harness.Given(reader.Mutex("n").TryLock(t.Context())) },
		"attach": func() error { return harness.Given(reader.Attach(t.Context(), ticket)) },
		"enter": func() error {
			return harness.Given(reader.Mutex("n", holdfast.WithOwner(held.Owner())).TryLock(t.Context()))
		},
	} {
		var failure *holdfast.StoreError
		if err := harness.Answered(t, do); !errors.As(err, &failure) || failure.Kind != holdfast.StoreDenied {
			t.Errorf("%s: %v", op, err)
		}
	}
	if harness.Must(t, srv, "GET", harness.KeyOf("n")) != state {
		t.Error("it was touched")
	}
	harness.Release(t, held)
}
