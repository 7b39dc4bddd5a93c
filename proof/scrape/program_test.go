package scrape_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/promholdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/shard"
	"github.com/holdfast-go/holdfast/telemetry"
)

const serverAddr = "HOLDFAST_SCRAPE_SERVER"

// counts has the calls that the program made, those that ended by their outcome, the leases that it
// lost, and those that ended, lost or not. The tested observer has no part in them.
type counts struct {
	mu    sync.Mutex
	Calls map[telemetry.Outcome]int
	Made  int
	Lost  int
	Ended int

	Requests map[telemetry.RequestOutcome]int // but for those of the collector
}

func (c *counts) call() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Made++
}

func (c *counts) Observe(e holdfast.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Kind {
	case holdfast.EventGranted, holdfast.EventPassed, holdfast.EventRefused, holdfast.EventGaveUp:
		c.Calls[e.Outcome()]++
	case holdfast.EventLost:
		c.Lost++
		c.Ended++
	case holdfast.EventReleased:
		c.Ended++
	}
}

// ObserveRequest counts the requests for locks. The collector sends others when it is scraped.
func (c *counts) ObserveRequest(r telemetry.Request) {
	if r.Op == "list" || r.Op == "inspect" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Requests[r.Outcome]++
}

// TestProgram is the program that Prometheus scrapes: two clients whose goroutines want the same
// locks, until /stop is asked for. The answer to /stop has the counts. The event of a loss may come
// later than the release of its lease. After /end the program ends.
func TestProgram(t *testing.T) {
	harness.OnlyChild(t)
	counted := &counts{Calls: map[telemetry.Outcome]int{}, Requests: map[telemetry.RequestOutcome]int{}}
	observer, registry := promholdfast.NewObserver(), prometheus.NewRegistry()
	config := holdfast.Config{
		TTL: 600 * time.Millisecond, Observer: holdfast.Observers(counted, observer),
		Class: func(name string) string { class, _, _ := strings.Cut(name, ":"); return class },
	}
	clients := []*holdfast.Client{harness.Locker(t, os.Getenv(serverAddr), &config),
		harness.Locker(t, os.Getenv(serverAddr), &config)}
	set := shard.New(harness.Locker(t, os.Getenv(serverAddr), nil), "shards", 4) // not counted
	registry.MustRegister(observer, promholdfast.NewShardCollector(set),
		// Each scrape lists all names.
		promholdfast.NewCollector(clients[0], &promholdfast.CollectorOptions{Every: time.Millisecond, Worst: 10}))
	work, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		_ = set.Run(work, func(ctx context.Context, _ int) error { <-ctx.Done(); return nil })
	})
	for i, client := range clients {
		own := client.Mutex(fmt.Sprintf("batch:%d", i), holdfast.WithWait(10*time.Second))
		for way := range 6 {
			all.Go(func() { contend(work, t, counted, client, own, way) })
		}
	}
	end, mux := make(chan struct{}), http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/stop", func(w http.ResponseWriter, _ *http.Request) {
		stop()
		all.Wait()
		counted.mu.Lock()
		defer counted.mu.Unlock()
		_ = json.NewEncoder(w).Encode(counted)
	})
	mux.HandleFunc("/end", func(http.ResponseWriter, *http.Request) { close(end) })
	server := httptest.NewServer(mux)
	defer server.Close()
	fmt.Println("serving on", server.Listener.Addr())
	<-end
}

// contend locks in its way until ctx ends. Each call ends by itself, so that none is cut off. Own
// is a name that no other client wants: there the lock is passed on, as holds are short.
func contend(ctx context.Context, t *testing.T, counted *counts, client *holdfast.Client, own *holdfast.Mutex,
	way int) {
	lock := client.Mutex("order:42", holdfast.WithWait(20*time.Millisecond))
	take, hold, rest := lock.Lock, time.Millisecond, time.Duration(0)
	switch way {
	case 0:
		take = lock.TryLock
	case 1: // renewed, and lost at the end
		lock = client.Mutex("report:1", holdfast.WithWait(20*time.Millisecond),
			holdfast.WithMaxHold(700*time.Millisecond))
		take, hold = lock.Lock, time.Second
	case 2, 3:
		take = own.Lock
	case 4: // retained, and recalled by the other client while nobody uses it
		take, rest = client.Mutex("price:1", holdfast.WithRetain(time.Second)).Lock, 5*time.Millisecond
	}
	for ctx.Err() == nil {
		counted.call()
		lease, err := take(t.Context())
		if err != nil {
			if !errors.Is(err, holdfast.ErrHeld) && !errors.Is(err, holdfast.ErrWaitOver) {
				t.Error(err)
				return
			}
			<-time.After(3 * time.Millisecond)
			continue
		}
		select {
		case <-time.After(hold):
		case <-leased.Context(lease).Done():
		}
		if err := lease.Release(); err != nil && !errors.Is(err, holdfast.ErrLost) {
			t.Error(err)
		}
		<-time.After(rest)
	}
}
