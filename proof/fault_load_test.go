package proof

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// crowd is four clients.
func crowd(t *testing.T, addr string, config *holdfast.Config, on func(holdfast.Store) holdfast.Store) (all []*holdfast.Client) {
	for range 4 {
		all = append(all, client(t, addr, config, on))
	}
	return all
}

// Trap 14: the server forgets its scripts every 5 ms.
func TestFaultScriptFlush(t *testing.T) {
	srv := redisserver.Start(t)
	l := &load{t: t, names: 4}
	flushes := every(5*time.Millisecond, func() { _, _ = srv.Do("SCRIPT", "FLUSH") })
	l.run(crowd(t, srv.Addr(), &holdfast.Config{TTL: time.Second}, nil), 4, 0, time.Duration(times(t))*2*time.Second)
	l.judge(fmt.Sprintf("SCRIPT FLUSH %d times, every 5 ms", flushes()))
	if l.lost > 0 || l.unsure > 0 {
		t.Errorf("%d lost, %d uncertain: a server that forgot a script has done nothing", l.lost, l.unsure)
	}
}

// Traps 10, 11, 12 and 17: all connections, those of messages too, are killed every 10 ms.
func TestFaultConnectionsKilled(t *testing.T) {
	srv := redisserver.Start(t)
	l := &load{t: t, names: 4}
	kills := every(10*time.Millisecond, func() {
		_, _ = srv.Do("CLIENT", "KILL", "TYPE", "normal")
		_, _ = srv.Do("CLIENT", "KILL", "TYPE", "pubsub")
	})
	l.run(crowd(t, srv.Addr(), &holdfast.Config{TTL: 2 * time.Second}, nil), 4, 0, time.Duration(times(t))*3*time.Second)
	l.judge(fmt.Sprintf("all connections killed %d times, every 10 ms", kills()))
	eventually(t, "all names are free", func() bool {
		for i := range l.names {
			if do(t, srv, "EXISTS", fmt.Sprintf("holdfast:{n%d}", i)) != int64(0) {
				return false
			}
		}
		return true
	})
}

// A deaf store loses every second message.
type deaf struct {
	holdfast.Store
	heard, lost *atomic.Int64
}

func (d deaf) Subscribe(ctx context.Context, sink holdfast.Sink) (holdfast.Subscription, error) {
	return d.Store.Subscribe(ctx, deafSink{sink, d})
}

type deafSink struct {
	holdfast.Sink
	d deaf
}

func (s deafSink) Message(channel, payload string) {
	if s.d.heard.Add(1)%2 == 0 {
		s.d.lost.Add(1)
		return
	}
	s.Sink.Message(channel, payload)
}

// Traps 17 and 20b: every second message is lost. Nobody is stuck: who was not told asks.
func TestFaultMessagesDropped(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	var heard, lost atomic.Int64
	clients := crowd(t, srv.Addr(), &holdfast.Config{TTL: 2 * time.Second}, func(s holdfast.Store) holdfast.Store { return deaf{s, &heard, &lost} })
	l := &load{t: t, names: 16}
	l.run(clients, 16, 12*times(t), 0)
	l.judge(fmt.Sprintf("%d of %d messages lost", lost.Load(), heard.Load()))
	if lost.Load() < 50 {
		t.Errorf("%d lost messages show nothing", lost.Load())
	}
}

// Trap 44: the server is killed and started again, with what it wrote down. Without an AOF it forgets who holds: then a holder is
// told at its next renewal, and another may be in before; tokens grow all the same.
func TestFaultServerKilled(t *testing.T) {
	for name, opts := range map[string][]string{
		"no AOF":   nil,
		"everysec": {"--appendonly", "yes", "--appendfsync", "everysec"},
		"always":   {"--appendonly", "yes", "--appendfsync", "always"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redisserver.Start(t, opts...)
			l := &load{t: t, names: 4}
			clients := crowd(t, srv.Addr(), &holdfast.Config{TTL: 2 * time.Second}, nil)
			kills := every(500*time.Millisecond, func() { _ = srv.Restart() })
			l.run(clients, 4, 0, time.Duration(times(t))*3*time.Second)
			n := kills()
			if opts == nil {
				t.Logf("without an AOF, %d holds began while another was trusted", l.overlaps)
				l.overlaps = 0
			}
			l.judge(fmt.Sprintf("kill -9 and restart %d times, %s", n, name))
			if n < 2 {
				t.Errorf("%d restarts show nothing", n)
			}
		})
	}
}
