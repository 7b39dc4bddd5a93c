package examples_test

import (
	"context"
	"errors"
	"log"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// The code of the README, word for word. The values that the code uses come as arguments. What a
// service does that comes from redsync is in fromredsync_test.go.

type (
	biller func(ctx context.Context, order int) error
	saver  func(ctx context.Context, order int, token int64) error
)

func readmeDo(ctx context.Context, client *holdfast.Client, bill biller, save saver) error {
	order := client.Mutex("order:42", holdfast.WithWait(10*time.Second))
	return order.Do(ctx, func(ctx context.Context) error {
		if err := bill(ctx, 42); err != nil { // nobody else bills order 42 now
			return err
		}
		lease, _ := holdfast.LeaseFrom(ctx)
		return save(ctx, 42, lease.Token())
	})
}

func readmeByHand(ctx context.Context, client *holdfast.Client, bill biller, save saver) error {
	lease, err := client.Mutex("order:42", holdfast.WithWait(10*time.Second)).Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release()          // works although ctx is over
	ctx, cancel := lease.Bind(ctx) // ends with the request or with the lease, whichever is first
	defer cancel()
	if err := bill(ctx, 42); err != nil {
		return err
	}
	return save(ctx, 42, lease.Token())
}

func readmeWithoutRedis(ctx context.Context, client *holdfast.Client, bill biller) error {
	lease, err := client.Mutex("order:42", holdfast.WithWait(2*time.Second)).Lock(ctx)
	switch {
	case err == nil:
		defer lease.Release()
		bound, cancel := lease.Bind(ctx)
		defer cancel()
		ctx = bound
	case errors.Is(err, holdfast.ErrUnavailable) && ctx.Err() == nil:
		log.Print("without the lock: ", err)
	default:
		return err
	}
	return bill(ctx, 42)
}

// Without Redis the work begins after the time of WithWait, and not while another holds.
func TestReadmeGoesOnWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, ran := holdfasttest.Start(t), 0
		client := server.Client(nil)
		bill := func(context.Context, int) error { ran++; return nil }
		lease, err := server.Client(nil).Mutex("order:42").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := readmeWithoutRedis(t.Context(), client, bill); !errors.Is(err, holdfast.ErrHeld) || ran > 0 {
			t.Errorf("while another holds: ran %d times, %v", ran, err)
		}
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
		server.Silence()
		logs(t)
		began := time.Now()
		if err := readmeWithoutRedis(t.Context(), client, bill); err != nil || ran != 1 ||
			time.Since(began) != 2*time.Second {
			t.Errorf("ran %d times, after %v: %v", ran, time.Since(began), err)
		}
		server.Resume()
	})
}

type form func(context.Context, *holdfast.Client, biller, saver) error

// each runs a test for both forms, each on a server and a fake clock of its own.
func each(t *testing.T, test func(*testing.T, *holdfasttest.Server, form)) {
	for name, run := range map[string]form{"do": readmeDo, "by hand": readmeByHand} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, holdfasttest.Start(t), run) })
		})
	}
}

// works returns work that takes so long, and says whether it was cut.
func works(d time.Duration, cut *bool) biller {
	return func(ctx context.Context, _ int) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			*cut = true
			return context.Cause(ctx)
		}
	}
}

func saved(context.Context, int, int64) error { return nil }

// The work ends with its request and with its lease, and the error says so. The time for waiting
// does not cut it.
func TestReadmeWorkIsCutByItsRequestAndItsLeaseAlone(t *testing.T) {
	for name, test := range map[string]struct {
		during func(server *holdfasttest.Server, lease *holdfast.Lease, cancel func())
		work   time.Duration
		want   error
	}{
		"nothing happens": {func(*holdfasttest.Server, *holdfast.Lease, func()) {}, time.Hour, nil},
		"the customer goes away": {func(_ *holdfasttest.Server, _ *holdfast.Lease, cancel func()) { cancel() },
			time.Minute, context.Canceled},
		"the lease is lost": {func(server *holdfasttest.Server, lease *holdfast.Lease, _ func()) { server.Lose(lease) },
			time.Minute, holdfast.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, server *holdfasttest.Server, run form) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				cut, began := false, time.Time{}
				err := run(ctx, server.Client(nil), func(ctx context.Context, order int) error {
					lease, _ := holdfast.LeaseFrom(ctx)
					test.during(server, lease, cancel)
					began = time.Now()
					return works(test.work, &cut)(ctx, order)
				}, saved)
				took, atOnce := time.Since(began), test.want != nil
				if !errors.Is(err, test.want) || cut != atOnce || (took == 0) != atOnce {
					t.Errorf("cut: %v, after %v: %v", cut, took, err)
				}
			})
		})
	}
}

// The error that the README shows has the words of the library, with other values.
func TestReadmeErrorIsThatOfTheLibrary(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```text\n(.*?)\n```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d texts", len(blocks))
	}
	since := time.Now()
	told := &holdfast.HeldError{Kind: "mutex", Name: "clean up", Holder: "api@host1/4711", Since: since, Holders: 1,
		Remaining: 13 * time.Second}
	if got := strings.Replace(told.Error(), since.Format(time.RFC3339), "2026-11-26T02:14:05+01:00",
		1); got != blocks[0][1] {
		t.Errorf("the README has\n%s\nand the error is\n%s", blocks[0][1], got)
	}
}
