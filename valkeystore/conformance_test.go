// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/storetest"
	"github.com/holdfast-go/holdfast/valkeystore"
)

func TestConformance(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			if name == "RESP2" {
				long(t)
			}
			srv := redisserver.Start(t)
			conform(t, func(tb testing.TB) valkey.Client { return client(tb, srv.Addr(), protocol) },
				func() []*redisserver.Server { return []*redisserver.Server{srv} })
		})
	}
}

// The same suite as on a single server, with nothing but another client.
func TestConformanceSentinel(t *testing.T) {
	long(t)
	rig := redisserver.StartSentinel(t)
	rig.Patient()
	conform(t, func(tb testing.TB) valkey.Client {
		return client(tb, rig.Addrs()[0], func(o *valkey.ClientOption) {
			o.InitAddress, o.Sentinel.MasterSet = rig.Addrs(), rig.Name()
		})
	}, func() []*redisserver.Server { return []*redisserver.Server{rig.Master()} })
}

func TestConformanceCluster(t *testing.T) {
	long(t)
	rig := redisserver.StartCluster(t)
	rig.Patient()
	conform(t, func(tb testing.TB) valkey.Client {
		// One address: of several, the client dials all and looks at the slots when the first has
		// answered. A connection that comes during the look leaves a goroutine that sleeps for 5s,
		// and the end of each case would wait for it.
		return client(tb, rig.Addrs()[0])
	}, rig.Masters)
}

// long skips what is too long for every day.
func long(t *testing.T) {
	t.Helper()
	if !thorough() {
		t.Skip("several servers and some time: only with HOLDFAST_PROOF=1")
	}
}

// thorough tells that long tests are wanted, and that times are judged.
func thorough() bool { return os.Getenv("HOLDFAST_PROOF") == "1" }

// measured tells whether times are judged, where nothing else runs.
func measured() bool { return thorough() && !testing.Short() }

func conform(t *testing.T, client func(testing.TB) valkey.Client, masters func() []*redisserver.Server) {
	storetest.Run(t, storetest.Backend{
		Parallel: 4,
		Open:     func(tb testing.TB, config *holdfast.Config) *holdfast.Client { return open(tb, client(tb), config) },
		Left: func(tb testing.TB, prefix string) (keys []string) {
			for _, srv := range masters() {
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

func open(tb testing.TB, rdb valkey.Client, config *holdfast.Config) *holdfast.Client {
	tb.Helper()
	c, err := holdfast.New(valkeystore.New(rdb), config)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
