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
// later than the release of its lease.
func TestProgram(t *testing.T) {
	harness.OnlyChild(t)
	counted := &counts{Calls: map[telemetry.Outcome]int{}, Requests: map[telemetry.RequestOutcome]int{}}
	config := holdfast.Config{TTL: 600 * time.Millisecond, Observer: counted}
	clients, registry := newProgram(t, config, time.Millisecond)
	work, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i, client := range clients {
		own := client.Mutex(fmt.Sprintf("batch:%d", i), holdfast.WithWait(10*time.Second))
		for way := range 6 {
			all.Go(func() { contend(work, t, counted, client, own, way) })
		}
	}
	serve(registry, func(w http.ResponseWriter, _ *http.Request) {
		stop()
		all.Wait()
		counted.mu.Lock()
		defer counted.mu.Unlock()
		_ = json.NewEncoder(w).Encode(counted)
	})
}

// newProgram makes two clients, and the metrics of both. A scrape lists all names if the last list
// is older.
func newProgram(t *testing.T, config holdfast.Config, every time.Duration) ([]*holdfast.Client, *prometheus.Registry) {
	t.Helper()
	observer, registry := promholdfast.NewObserver(), prometheus.NewRegistry()
	config.Observer = holdfast.Observers(config.Observer, observer)
	config.Class = func(name string) string { class, _, _ := strings.Cut(name, ":"); return class }
	clients := []*holdfast.Client{harness.Locker(t, os.Getenv(serverAddr), &config),
		harness.Locker(t, os.Getenv(serverAddr), &config)}
	registry.MustRegister(observer,
		promholdfast.NewCollector(clients[0], &promholdfast.CollectorOptions{Every: every}))
	return clients, registry
}

// serve serves the metrics, and what /stop does, until /end is asked for.
func serve(registry *prometheus.Registry, stop http.HandlerFunc) {
	end, mux := make(chan struct{}), http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/stop", stop)
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
	take, hold := lock.Lock, time.Millisecond
	switch way {
	case 0:
		take = lock.TryLock
	case 1: // renewed, and lost at the end
		lock = client.Mutex("report:1", holdfast.WithWait(20*time.Millisecond),
			holdfast.WithMaxHold(700*time.Millisecond))
		take, hold = lock.Lock, time.Second
	case 2, 3:
		take = own.Lock
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
	}
}

// TestHealthyProgram is a program with contention and the default TTL, in which all is well. Its
// locks are held for milliseconds, for longer than a claim, and for longer than a renewal takes to
// come.
func TestHealthyProgram(t *testing.T) {
	harness.OnlyChild(t)
	clients, registry := newProgram(t, holdfast.Config{}, time.Second)
	work, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, client := range clients {
		for name, held := range map[string]time.Duration{"order:42": 2 * time.Millisecond,
			"page:1": 100 * time.Millisecond, "report:1": 6 * time.Second} {
			for range 2 {
				all.Go(func() { takeTurns(work, t, client.Mutex(name).Lock, held) })
			}
		}
		all.Go(func() { takeTurns(work, t, client.RWMutex("config").RLock, 100*time.Millisecond) })
		all.Go(func() { takeTurns(work, t, client.RWMutex("config").Lock, 100*time.Millisecond) })
		all.Go(func() { takeTurns(work, t, client.Election("leader").Campaign, time.Minute) })
	}
	serve(registry, func(http.ResponseWriter, *http.Request) {
		stop()
		all.Wait()
	})
}

// takeTurns takes a lock again and again, and holds it for so long each time, until ctx ends.
func takeTurns(ctx context.Context, t *testing.T, take func(context.Context) (*holdfast.Lease, error),
	held time.Duration) {
	for ctx.Err() == nil {
		lease, err := take(ctx)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		select {
		case <-time.After(held):
		case <-ctx.Done():
		}
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	}
}
