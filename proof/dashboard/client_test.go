package dashboard_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dashboard"
	"github.com/holdfast-go/holdfast/holdfasttest"
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
		handler := dashboard.Handler(server.Client(&holdfast.Config{Label: "operator"}), &dashboard.Options{Authorize: func(*http.Request) bool { return true }})
		lease, err := worker.Mutex("order:1").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			next, err := waiter.Mutex("order:1").Lock(t.Context())
			if err == nil {
				err = next.Release(t.Context())
			}
			got <- err
		}()
		<-time.After(2 * time.Second)
		events := watch(t, handler)
		_, secret, _ := strings.Cut(<-events, `"secret":"`)
		secret, _, _ = strings.Cut(secret, `"`)
		first := <-events
		for _, want := range []string{`"whole":true`, `"name":"order:1"`, `"label":"worker"`, `"waiters":1`, `"ready":""`} {
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
		r := httptest.NewRequest("POST", "/break", strings.NewReader(`{"name":"order:1","token":`+token+`,"typed":"order:1"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("X-Holdfast-Secret", secret)
		w = httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != 200 {
			t.Errorf("break: %d %s", w.Code, w.Body)
		}
		<-lease.Context().Done()
		var lost *holdfast.LostError
		if cause := context.Cause(lease.Context()); !errors.As(cause, &lost) || lost.By != "operator" {
			t.Errorf("the lease ended with %v", cause)
		}
		_ = lease.Release(t.Context()) // its code has stopped
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
