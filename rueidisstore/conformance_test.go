package rueidisstore_test

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rueidisstore"
	"github.com/holdfast-go/holdfast/storetest"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
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

func open(tb testing.TB, rdb rueidis.Client, config *holdfast.Config) *holdfast.Client {
	tb.Helper()
	c, err := holdfast.New(rueidisstore.New(rdb), config)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
