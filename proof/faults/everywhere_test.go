package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/store"
)

// TestFaults does one fault after the other to each topology.
func TestFaults(t *testing.T) {
	harness.Long(t)
	for _, topology := range []string{harness.Single, harness.Sentinel, harness.Cluster, harness.Quorum} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			b := harness.Deploy(t, topology)
			for _, f := range []struct {
				name string
				do   func(*testing.T, *harness.Deployment)
			}{
				{"scripts flushed", flushScripts},
				{"connections killed", killConnections},
				{"messages dropped", dropMessages},
				{"answers lost", loseEachAnswer},
				{"requests late", delayRequests},
				{"byte by byte", sendByteByByte},
				{"half-open", silenceConnections},
				{"servers stopped", stopServers},
				{"processes stopped", stopProcesses},
				{"keys of others", putForeignKeys},
				{"refusals", refuseRequests},
				{"history refused", refuseHistory},
				{"data lost", loseData}, // the last: a harness.Quorum that forgot takes its time
			} {
				t.Run(f.name, func(t *testing.T) { f.do(t, b.Under(t, strings.ReplaceAll(f.name, " ", "-"))) })
			}
		})
	}
}

// Trap 14: the servers forget their scripts every 5 ms.
func flushScripts(t *testing.T, b *harness.Deployment) {
	l := &harness.Load{T: t, Names: harness.Names(4), Retains: b.Topology != harness.Quorum}
	flushes := repeat(5*time.Millisecond,
		func() { b.Each(func(srv *redisserver.Server) { _, _ = srv.Do("SCRIPT", "FLUSH") }) })
	l.Run(b.Clients(t, holdfast.Config{TTL: 6 * time.Second}), 4, 0, time.Duration(times(t))*2*time.Second)
	l.Report(fmt.Sprintf("SCRIPT FLUSH %d times, every 5 ms", flushes()))
	l.IsUndisturbed("a server that forgot a script has done nothing")
}

// Traps 10, 11, 12 and 17: all connections, those of messages too, are killed every 10 ms. After
// that the clients answer questions.
func killConnections(t *testing.T, b *harness.Deployment) {
	l := &harness.Load{T: t, Names: harness.Names(4), Retains: b.Topology != harness.Quorum}
	n, holds, since := 0, 0, time.Now()
	kills := repeat(10*time.Millisecond, func() {
		if now := l.Seen().Holds; now > holds {
			holds, since = now, time.Now()
			// on a machine so slow that nobody gets in between two, they wait for one who does
		} else if time.Since(since) > time.Second {
			return
		}
		n++
		b.Each(func(srv *redisserver.Server) {
			_, _ = srv.Do("CLIENT", "KILL", "TYPE", "normal")
			_, _ = srv.Do("CLIENT", "KILL", "TYPE", "pubsub")
		})
	})
	clients := b.Clients(t, holdfast.Config{TTL: 2 * time.Second, Remote: true})
	l.Run(clients, 4, 0, time.Duration(times(t))*3*time.Second)
	kills()
	l.Report(fmt.Sprintf("all connections killed %d times, every 10 ms", n))
	lease := harness.Lock(t, clients[0].Mutex("asked"))
	harness.Eventually(t, "an answer", func() bool {
		stacks, err := clients[1].Stacks(t.Context(), "asked")
		return err == nil && len(stacks) == 1 && len(stacks[0].Frames) > 0
	})
	harness.Release(t, lease)
	b.IsClean(t)
}

// A deaf store loses every second message.
type deaf struct {
	store.Store
	heard, lost *atomic.Int64
}

func (d deaf) Listen(ctx context.Context, node string, sharded bool, events store.Events) (store.Listener, error) {
	return d.Store.Listen(ctx, node, sharded, deafEvents{events, d})
}

type deafEvents struct {
	store.Events
	deaf deaf
}

func (e deafEvents) Message(channel, payload string) {
	if e.deaf.heard.Add(1)%2 == 0 {
		e.deaf.lost.Add(1)
		return
	}
	e.Events.Message(channel, payload)
}

// Traps 17 and 20b: every second message is lost. Nobody is stuck: who was not told asks.
func dropMessages(t *testing.T, b *harness.Deployment) {
	var heard, lost atomic.Int64
	b.On = func(s store.Store) store.Store { return deaf{s, &heard, &lost} }
	clients := b.Clients(t, holdfast.Config{TTL: 2 * time.Second})
	const least = 50
	l := &harness.Load{T: t, Names: harness.Names(16), Retains: b.Topology != harness.Quorum,
		Enough: func() bool { return lost.Load() >= least }}
	l.Run(clients, 16, 12*times(t), 0)
	l.Report(fmt.Sprintf("%d of %d messages lost", lost.Load(), heard.Load()))
	if lost.Load() < least {
		t.Errorf("%d lost messages show nothing", lost.Load())
	}
	b.IsClean(t)
}

// Traps 12 and 35: a third of all requests come late, up to longer than their senders wait, and so
// in another order than they were sent. A request that was given up does not take effect and stay:
// the TTL is a minute here, so nobody else would get in.
func delayRequests(t *testing.T, b *harness.Deployment) {
	clients, w := b.Proxied(t, 4, holdfast.Config{TTL: time.Minute, ReleaseTimeout: 500 * time.Millisecond})
	const most = 1800 * time.Millisecond // a request lasts a second
	late := func(d time.Duration) { w.Each(func(p *fault.Proxy) { p.Jitter("EVAL", d) }) }
	again := repeat(5*time.Millisecond, func() { late(most) }) // at new proxies as well
	each := 16
	if b.Topology == harness.Quorum { // three servers for each request
		each = 4
	}
	l := &harness.Load{T: t, Names: harness.Names(16), Retains: b.Topology != harness.Quorum,
		Spares: b.Topology == harness.Quorum}
	l.Run(clients, each, 0, time.Duration(times(t))*4*time.Second)
	again()
	late(0)
	if b.Topology == harness.Quorum && l.Stuck > 0 {
		// A majority of three in time, again and again, is much to ask: some waits end without. All
		// get in when it is over.
		t.Logf("%d waits of %v ended without the lock while requests came late", l.Stuck, harness.Patience)
		l.Stuck = 0
	}
	l.Report(fmt.Sprintf("a third of the requests up to %v late", most))
	after := &harness.Load{T: t, Names: harness.Names(16), Retains: b.Topology != harness.Quorum}
	after.Run(clients, each, max(1, 64/(4*each)), 0)
	after.Report("after that")
	b.IsClean(t)
}

// An answer that comes byte by byte is the same.
func sendByteByByte(t *testing.T, b *harness.Deployment) {
	clients, w := b.Proxied(t, 4, holdfast.Config{TTL: 6 * time.Second})
	for _, c := range clients { // scripts go whole, once
		harness.Release(t, harness.Lock(t, c.Mutex("warm")))
	}
	again := repeat(5*time.Millisecond, func() {
		w.Each(func(p *fault.Proxy) {
			p.Trickle(true)
			p.Delay(time.Duration(time.Now().UnixNano() % 3e6))
		})
	})
	l := &harness.Load{T: t, Names: harness.Names(4), Retains: b.Topology != harness.Quorum}
	l.Run(clients, 4, 0, time.Duration(times(t))*2*time.Second)
	again()
	l.Report("one byte at a time, each answer up to 3 ms late")
	l.IsUndisturbed("nothing failed")
	b.IsClean(t)
}

// Traps 17 and 18: connections that stay, and carry nothing for longer than a TTL. One of four
// clients at a time; the others are in when its TTL is over.
func silenceConnections(t *testing.T, b *harness.Deployment) {
	var clients []*holdfast.Client
	var all []*harness.Proxies
	const ttl = 600 * time.Millisecond
	for range 4 {
		one, w := b.Proxied(t, 1, holdfast.Config{TTL: ttl, ReleaseTimeout: ttl})
		clients, all = append(clients, one...), append(all, w)
	}
	const least = 3
	n, told := 0, 0
	var done atomic.Int64
	silent := repeat(100*time.Millisecond, func() {
		i := n % len(all)
		n++
		name := fmt.Sprint("mine", n)
		lease, err := clients[i].Mutex(name).Lock(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		all[i].Each((*fault.Proxy).Silence)
		next, err := clients[(i+1)%len(all)].Mutex(name).Lock(t.Context())
		if err == nil && errors.Is(lease.Err(), holdfast.ErrLost) {
			told++
		}
		pause(ttl / 4)
		all[i].Each((*fault.Proxy).Speak)
		if err == nil {
			err = next.Release()
		}
		if err != nil && !isOutlasted(err) { // on a machine that has much else to do
			t.Error(err)
		}
		if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("its release: %v", err)
		}
		pause(ttl / 4)
		done.Add(1)
	})
	l := &harness.Load{T: t, Names: harness.Names(4), Retains: b.Topology != harness.Quorum,
		Enough: func() bool { return done.Load() >= least }}
	l.Run(clients, 4, 0, time.Duration(times(t))*5*time.Second)
	times := silent()
	l.Report(fmt.Sprintf("a client's connections half-open %d times for longer than its TTL, %d times it knew before "+
		"another was in", times, told))
	if told < times || times < least {
		t.Error("it did not know in time")
	}
	if limit := 10 * time.Second; harness.Measured() && l.Longest > limit {
		t.Errorf("somebody waited %v", l.Longest)
	}
	b.IsClean(t)
}

func TestMain(m *testing.M) {
	harness.Quiet()
	if os.Getenv(childEnv) != "" {
		if err := runChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // topologies beside each other: most of the time is waiting
	os.Exit(leak.Main(m))
}

// times returns how much of everything is wanted.
func times(t *testing.T) int {
	t.Helper()
	return int(max(1, harness.Number(t, "HOLDFAST_FAULTS", 1)))
}

func pause(d time.Duration) { <-time.After(d) }

// repeat does something again and again until it is stopped, and says how often.
func repeat(d time.Duration, f func()) (stop func() int) {
	over, done, n := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(done)
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				f()
				n++
			}
		}
	}()
	return func() int { close(over); <-done; return n }
}
