package dashboard_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dashboard"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Pages that do not read cost the program a part of the list each, and not a copy, and their
// streams end.
func TestPagesThatDoNotReadOnRealConnections(t *testing.T) {
	harness.Long(t)
	const names, pages = 5_000, 99
	server := redisserver.Start(t)
	client := func(label string) *holdfast.Client {
		return harness.Locker(t, server.Addr(), &holdfast.Config{Label: label})
	}
	// A byte of the label is six in JSON.
	lockMany(t, client(strings.Repeat("\x01", 1000)), names, holdfast.WithTTL(5*time.Minute), holdfast.WithoutRenewal())

	page := dashboard.Handler(client("operator"), nil)
	var streams atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Add(1)
		defer streams.Add(-1)
		page.ServeHTTP(w, r)
	}))
	defer site.Close()
	defer site.CloseClientConnections()
	open := func() net.Conn {
		conn, err := net.Dial("tcp", site.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: %s\r\n\r\n", site.Listener.Addr()); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	most := func(during time.Duration) (bytes uint64) {
		for end := time.Now().Add(during); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			bytes = max(bytes, m.HeapInuse)
		}
		return bytes
	}
	reader := open()
	defer reader.Close()
	list := make(chan int, 1)
	go func() {
		n := 0
		events := bufio.NewReader(reader)
		for whole := false; ; {
			line, err := events.ReadString('\n')
			if whole = whole || strings.Contains(line, `"whole":true`); whole {
				n += len(line)
			}
			if err != nil || whole && strings.Contains(line, `"part":false`) {
				break
			}
		}
		list <- n
		_, _ = io.Copy(io.Discard, events)
	}()
	size := <-list
	one := most(10 * time.Second)
	for range pages {
		conn := open()
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	}
	all := most(harness.Patience) // the streams end meanwhile
	t.Logf("the list has %d MB; in use are at most %d MB with one page that reads, and %d MB with %d beside it that "+
		"do not", size>>20, one>>20, all>>20, pages)
	if all > one+pages<<20 {
		t.Errorf("%d pages cost %d MB", pages, (all-one)>>20)
	}
	if n := streams.Load(); n != 1 {
		t.Errorf("%d streams go on, and 1 reads", n)
	}
}

// lockMany takes as many names, in the order of their numbers.
func lockMany(t *testing.T, client *holdfast.Client, names int, options ...holdfast.Option) {
	t.Helper()
	var work errgroup.Group
	work.SetLimit(16)
	for i := range names {
		work.Go(func() error {
			_, err := client.Mutex(fmt.Sprintf("item:%05d", i), options...).TryLock(t.Context())
			return err
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
}
