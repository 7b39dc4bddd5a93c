package rueidisstore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rueidisstore"
	"github.com/holdfast-go/holdfast/storetest"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

func TestConformance(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			if name == "RESP2" && !thorough() {
				t.Skip("only with HOLDFAST_CHECK=1")
			}
			conform(t, protocol, redisserver.Start(t))
		})
	}
}

// thorough tells that the long tests are wanted.
func thorough() bool { return os.Getenv("HOLDFAST_CHECK") == "1" }

func conform(t *testing.T, change func(*rueidis.ClientOption), servers ...*redisserver.Server) {
	storetest.Run(t, storetest.Backend{
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			return open(tb, client(tb, servers[0].Addr(), change), config)
		},
		Left: func(tb testing.TB, prefix string) (keys []string) {
			for _, srv := range servers {
				answer, err := srv.Do("KEYS", prefix+"*")
				if err != nil {
					tb.Fatal(err)
				}
				for _, key := range answer.([]any) {
					if !strings.HasSuffix(key.(string), "}:clock") { // that of a slot stays
						keys = append(keys, key.(string))
					}
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
