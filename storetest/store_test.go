package storetest_test

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/storetest"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// open makes a plain store, which the end of the test closes.
func open(tb testing.TB, address, user, password string) store.Store {
	p := &plain{address: address, user: user, password: password}
	tb.Cleanup(p.Close)
	return p
}

// A store without a client library keeps the contracts of the seam, and locks work on it.
func TestPlainStoreSeam(t *testing.T) {
	srv := redisserver.Start(t)
	storetest.Seam(t, storetest.SeamBackend{
		Open:    func(tb testing.TB, user, password string) store.Store { return open(tb, srv.Addr(), user, password) },
		Address: srv.Addr(),
		At:      func(tb testing.TB, address string) store.Store { return open(tb, address, "", "") },
	})
}

// The suite takes a quarter of a minute in real time.
func TestPlainStoreConformance(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("with HOLDFAST_PROOF=1 only")
	}
	srv := redisserver.Start(t)
	storetest.Run(t, storetest.Backend{
		Parallel: 4,
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			client, err := holdfast.New(open(tb, srv.Addr(), "", ""), config)
			if err != nil {
				tb.Fatal(err)
			}
			return client
		},
	})
}
