// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/storetest"
	"github.com/holdfast-go/holdfast/valkeystore"
)

func TestQuorumConformance(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("it takes minutes of its own: make proof")
	}
	for name, n := range map[string]int{"three masters": 3, "five masters": 5} {
		t.Run(name, func(t *testing.T) {
			var masters []*redisserver.Server
			for range n {
				masters = append(masters, redisserver.Start(t))
			}
			quorumConformance(t, masters)
		})
	}
}

func quorumConformance(t *testing.T, masters []*redisserver.Server) {
	storetest.Run(t, storetest.Backend{
		Parallel: 4,
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			stores := make([]store.Store, len(masters))
			for i, srv := range masters {
				stores[i] = valkeystore.New(client(tb, srv.Addr()))
			}
			config.TrustNewNodes = true
			c, err := holdfast.NewQuorum(stores, config)
			if err != nil {
				tb.Fatal(err)
			}
			return c
		},
		Left: func(tb testing.TB, prefix string) (keys []string) {
			for _, srv := range masters {
				answer, err := srv.Do("KEYS", prefix+"*")
				if err != nil {
					tb.Fatal(err)
				}
				for _, key := range answer.([]any) {
					if key := key.(string); !strings.HasSuffix(key, ":{%quorum}") { // what a node knows of itself stays
						keys = append(keys, key)
					}
				}
			}
			return keys
		},
		NoQueue:      true,
		NoSemaphores: true,
		NoLatches:    true,
	})
}
