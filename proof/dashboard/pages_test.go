package dashboard_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dashboard"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// Pages that do not read cost the program a part of the list each, and not a copy, and their
// streams end.
func TestPagesThatDoNotReadOnRealConnections(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("it holds 5,000 locks and judges memory: HOLDFAST_PROOF=1, as in make proof, runs it")
	}
	const names, pages = 5_000, 99
	server := redisserver.Start(t)
	client := func(label string) *holdfast.Client {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		c, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{Label: label})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(); rdb.Close() })
		return c
	}
	worker := client(strings.Repeat("\x01", 1000)) // six bytes each in JSON
	var work sync.WaitGroup
	todo := make(chan int)
	for range 16 {
		work.Go(func() {
			for i := range todo {
				_, err := worker.Mutex(fmt.Sprintf("item:%05d", i), holdfast.WithTTL(5*time.Minute),
					holdfast.WithoutRenewal()).TryLock(t.Context())
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range names {
		todo <- i
	}
	close(todo)
	work.Wait()

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
	all := most(patience) // the streams end meanwhile
	t.Logf("the list has %d MB; in use are at most %d MB with one page that reads, and %d MB with %d beside it that "+
		"do not",
		size>>20, one>>20, all>>20, pages)
	if all > one+pages<<20 {
		t.Errorf("%d pages cost %d MB", pages, (all-one)>>20)
	}
	if n := streams.Load(); n != 1 {
		t.Errorf("%d streams go on, and 1 reads", n)
	}
}
