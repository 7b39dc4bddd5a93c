package security_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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
