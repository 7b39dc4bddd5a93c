package redisstore_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A scissors is a way of dialing whose connections break when an INCR was written, before its
// answer comes.
type scissors struct {
	cuts atomic.Int32
}

func (s *scissors) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cuttable{Conn: conn, s: s}, nil
}

type cuttable struct {
	net.Conn
	s   *scissors
	cut atomic.Bool
}

func (c *cuttable) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(bytes.ToLower(b), []byte("incr\r\n")) {
		c.s.cuts.Add(1)
		c.cut.Store(true)
	}
	return n, err
}

func (c *cuttable) Read(b []byte) (int, error) {
	if c.cut.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

// Trap 36: go-redis sends again what may have been carried out, by MaxRetries and, on a cluster, by
// MaxRedirects too. A command that goes through the store arrives once, through every kind of
// client.
func TestSentOnceByEachKind(t *testing.T) {
	kinds := map[string]func(*testing.T, *scissors) (redis.UniversalClient, func() []*redisserver.Server){
		"single": func(t *testing.T, s *scissors) (redis.UniversalClient, func() []*redisserver.Server) {
			srv := redisserver.Start(t)
			return client(t, srv, func(o *redis.Options) { o.Dialer = s.dial }), func() []*redisserver.Server { return []*redisserver.Server{srv} }
		},
		"sentinel": func(t *testing.T, s *scissors) (redis.UniversalClient, func() []*redisserver.Server) {
			long(t)
			rig := calmSentinel(t)
			rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: rig.Name(), SentinelAddrs: rig.Addrs(), Dialer: s.dial})
			t.Cleanup(func() { rdb.Close() })
			return rdb, func() []*redisserver.Server { return []*redisserver.Server{rig.Master()} }
		},
		"cluster": func(t *testing.T, s *scissors) (redis.UniversalClient, func() []*redisserver.Server) {
			long(t)
			rig := calm(t)
			rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: rig.Addrs(), Dialer: s.dial})
			t.Cleanup(func() { rdb.Close() })
			return rdb, rig.Masters
		},
	}
	for name, start := range kinds {
		t.Run(name, func(t *testing.T) {
			s := new(scissors)
			rdb, masters := start(t, s)
			calls := func() (n int) {
				for _, srv := range masters() {
					n += srv.CommandStats()["incr"]
				}
				return n
			}
			st := routed(rdb)
			if r := st.Do(within(t, patience), []wire.Request{{Key: "n", Args: []any{"GET", "n"}}})[0]; r.Err != nil {
				t.Fatal(r)
			}
			for _, batch := range []int{1, 3} {
				before, cuts := calls(), s.cuts.Load()
				reqs := make([]wire.Request, batch)
				for i := range reqs {
					reqs[i] = wire.Request{Key: "n", Args: []any{"INCR", "n"}}
				}
				for _, r := range st.Do(within(t, patience), reqs) {
					if r.Err == nil || r.Unsent {
						t.Errorf("got %+v", r)
					}
				}
				eventually(t, "it arrives", func() bool { return calls()-before >= batch })
				never(t, 300*time.Millisecond, func() bool { return calls()-before > batch || s.cuts.Load() != cuts+1 })
			}
			before := calls()
			if err := rdb.Incr(t.Context(), "n").Err(); err == nil {
				t.Error("the client itself had an answer, so this test shows nothing")
			}
			eventually(t, "the client itself repeats, or this test shows nothing", func() bool { return calls()-before >= 2 })
		})
	}
}

// never fails when the condition comes to hold within d.
func never(t *testing.T, d time.Duration, holds func() bool) {
	t.Helper()
	over := time.After(d)
	for {
		if holds() {
			t.Fatal("what must not happen happened")
		}
		select {
		case <-over:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
