package dashboard_test

import (
	"bufio"
	"context"
	"errors"
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
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dashboard"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// A stream is the response of an open page.
type stream struct {
	header http.Header
	out    *io.PipeWriter
}

func (s *stream) Header() http.Header              { return s.header }
func (s *stream) WriteHeader(int)                  {}
func (s *stream) Write(text []byte) (int, error)   { return s.out.Write(text) }
func (s *stream) Flush()                           {}
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// watch opens a page, and sends its events until the test is over.
func watch(t *testing.T, handler http.Handler) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	events, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		defer out.Close()
		handler.ServeHTTP(&stream{http.Header{}, out}, httptest.NewRequestWithContext(ctx, "GET", "/events", nil))
	}()
	go func() {
		defer close(events)
		text := ""
		buffer := make([]byte, 64<<10)
		for {
			n, err := in.Read(buffer)
			if err != nil {
				return
			}
			text += string(buffer[:n])
			for whole, rest, ok := strings.Cut(text, "\n\n"); ok; whole, rest, ok = strings.Cut(text, "\n\n") {
				events <- whole
				text = rest
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return events
}

// A real client: a hold, its waiter and the break of the hold are seen by the page.
func TestRealClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		worker, waiter := server.Client(&holdfast.Config{Label: "worker"}), server.Client(&holdfast.Config{Label: "waiter"})
		handler := dashboard.Handler(server.Client(&holdfast.Config{Label: "operator"}),
			&dashboard.Options{Authorize: func(*http.Request) bool { return true }})
		lease, err := worker.Mutex("order:1").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			next, err := waiter.Mutex("order:1").Lock(t.Context())
			if err == nil {
				err = next.Release()
			}
			got <- err
		}()
		<-time.After(2 * time.Second)
		events := watch(t, handler)
		_, secret, _ := strings.Cut(<-events, `"secret":"`)
		secret, _, _ = strings.Cut(secret, `"`)
		first := <-events
		for _, want := range []string{`"whole":true`, `"name":"order:1"`, `"label":"worker"`, `"waiters":1`,
			`"ready":""`} {
			if !strings.Contains(first, want) {
				t.Errorf("the first look lacks %s: %s", want, first)
			}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/lock?name=order%3A1", nil))
		if !strings.Contains(w.Body.String(), `"label":"waiter"`) {
			t.Errorf("the queue is not told: %s", w.Body)
		}
		_, token, _ := strings.Cut(first, `"token":`)
		token, _, _ = strings.Cut(token, ",")
		r := httptest.NewRequest("POST", "/break",
			strings.NewReader(`{"name":"order:1","token":`+token+`,"typed":"order:1"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("X-Holdfast-Secret", secret)
		w = httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != 200 {
			t.Errorf("break: %d %s", w.Code, w.Body)
		}
		<-leased.Context(lease).Done()
		var lost *holdfast.LostError
		if cause := context.Cause(leased.Context(lease)); !errors.As(cause, &lost) || lost.By != "operator" {
			t.Errorf("the lease ended with %v", cause)
		}
		_ = lease.Release() // its code has stopped
		if err := <-got; err != nil {
			t.Errorf("the waiter got %v", err)
		}
		for event := range events {
			if strings.Contains(event, `"event":"freed"`) {
				break
			}
		}
	})
}

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
	t.Logf("the list has %d MB; in use are at most %d MB with one page that reads, and %d MB with %d beside it that do not",
		size>>20, one>>20, all>>20, pages)
	if all > one+pages<<20 {
		t.Errorf("%d pages cost %d MB", pages, (all-one)>>20)
	}
	if n := streams.Load(); n != 1 {
		t.Errorf("%d streams go on, and 1 reads", n)
	}
}
