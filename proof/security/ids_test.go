package security_test

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

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
