// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore_test

import (
	"strings"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/storetest"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
	"github.com/holdfast-go/holdfast/valkeystore"
)

func TestConformance(t *testing.T) {
	srv := redisserver.Start(t)
	storetest.Run(t, storetest.Backend{
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			return open(tb, client(tb, srv.Addr()), config)
		},
		Left: func(tb testing.TB, prefix string) []string {
			answer, err := srv.Do("KEYS", prefix+"*")
			if err != nil {
				tb.Fatal(err)
			}
			var keys []string
			for _, key := range answer.([]any) {
				if !strings.HasSuffix(key.(string), "}:clock") { // that of a slot stays
					keys = append(keys, key.(string))
				}
			}
			return keys
		},
	})
}

func open(tb testing.TB, rdb valkey.Client, config *holdfast.Config) *holdfast.Client {
	tb.Helper()
	c, err := holdfast.New(valkeystore.New(rdb), config)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
