package redisstore_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/adaptertest"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/redisstore"
)

// A cuttingDialer is a way of dialing whose connections break when an INCR was written, before its
// answer comes.
type cuttingDialer struct {
	cuts atomic.Int32
}

func (s *cuttingDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cuttingConn{Conn: conn, s: s}, nil
}

type cuttingConn struct {
	net.Conn
	s   *cuttingDialer
	cut atomic.Bool
}

func (c *cuttingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(bytes.ToLower(b), []byte("incr\r\n")) {
		c.s.cuts.Add(1)
		c.cut.Store(true)
	}
	return n, err
}

func (c *cuttingConn) Read(b []byte) (int, error) {
	if c.cut.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

// Trap 36: go-redis sends again what may have been carried out, by MaxRetries and, on a cluster, by
// MaxRedirects too. A command that goes through the store arrives once, through every kind of
// client.
func TestSentOnceByEachKind(t *testing.T) {
	adaptertest.EachKind(t, func(t *testing.T, c adaptertest.Client, masters func() []*redisserver.Server) {
		dialer, opt := new(cuttingDialer), options(c)
		opt.Dialer = dialer.dial
		rdb := redis.NewUniversalClient(opt)
		defer rdb.Close()
		calls := func() (n int) {
			for _, srv := range masters() {
				n += srv.CommandStats()["incr"]
			}
			return n
		}
		ctx, st := adaptertest.Within(t, adaptertest.Patience), wire.Route(redisstore.New(rdb))
		if r := st.Do(ctx, []wire.Request{{Key: "n", Args: []any{"GET", "n"}}})[0]; r.Err != nil {
			t.Fatal(r)
		}
		for _, n := range []int{1, 3} {
			before, cuts := calls(), dialer.cuts.Load()
			for _, r := range st.Do(ctx, slices.Repeat([]wire.Request{{Key: "n", Args: []any{"INCR", "n"}}}, n)) {
				if r.Err == nil || r.Unsent {
					t.Errorf("got %+v", r)
				}
			}
			adaptertest.Eventually(t, "it arrives", func() bool { return calls()-before >= n })
			if calls()-before > n || dialer.cuts.Load() != cuts+1 {
				t.Errorf("%d commands arrived %d times, written %d times", n, calls()-before, dialer.cuts.Load()-cuts)
			}
		}
		before := calls()
		if err := rdb.Incr(t.Context(), "n").Err(); err == nil {
			t.Error("the client itself had an answer, so this test shows nothing")
		}
		adaptertest.Eventually(t, "the client itself repeats, or this test shows nothing", func() bool {
			return calls()-before >= 2
		})
	})
}
