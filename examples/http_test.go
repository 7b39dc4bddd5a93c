package examples_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// oneAtATime lets a customer have one request at a time, on all hosts together. A second request
// waits for a while, and then gets 429; while Redis is away, each gets 503. The context of the
// request ends when the lease is lost.
func oneAtATime(client *holdfast.Client, wait time.Duration, customer func(*http.Request) string,
	next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, err := client.Mutex("customer:"+customer(r), holdfast.WithWait(wait)).Lock(r.Context())
		switch {
		case errors.Is(err, holdfast.ErrHeld):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "another request of yours is being served", http.StatusTooManyRequests)
			return
		case err != nil:
			log.Print(err) // it may name the holder and the server, which is nothing for the customer
			http.Error(w, "try again later", http.StatusServiceUnavailable)
			return
		}
		defer lease.Release() // works although the request is over
		ctx, cancel := lease.Bind(r.Context())
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// A middleware for net/http: one request a customer at a time. Take the customer from who has
// signed in, not from what anybody can write into a header.
func Example_middleware() {
	clients, end := hosts("host 1", "host 2")
	defer end()

	entered, leave := make(chan struct{}), make(chan struct{})
	pay := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-leave
		}
	})
	customer := func(r *http.Request) string { return r.Header.Get("Customer") }
	request := func(host int, path, customerID string, wait time.Duration) int {
		for {
			w, r := httptest.NewRecorder(), httptest.NewRequest("POST", path, nil)
			r.Header.Set("Customer", customerID)
			oneAtATime(clients[host], wait, customer, pay).ServeHTTP(w, r)
			if w.Code != http.StatusServiceUnavailable { // else Redis had no time to answer
				return w.Code
			}
		}
	}

	first, second := make(chan int), make(chan int)
	go func() { first <- request(0, "/slow", "42", time.Minute) }()
	<-entered
	fmt.Println("customer 42 again, on host 2:", request(1, "/", "42", 10*time.Millisecond))
	fmt.Println("customer 43:", request(1, "/", "43", time.Minute))
	go func() { second <- request(1, "/", "42", time.Minute) }()
	close(leave)
	fmt.Println("the first:", <-first)
	fmt.Println("customer 42, who waits longer:", <-second)
	// Output:
	// customer 42 again, on host 2: 429
	// customer 43: 200
	// the first: 200
	// customer 42, who waits longer: 200
}

func TestMiddlewareEndsContextWithLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		var cause error
		work := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			lease, _ := holdfast.LeaseFrom(r.Context())
			server.Lose(lease)
			<-r.Context().Done()
			cause = context.Cause(r.Context())
		})
		customer := func(*http.Request) string { return "42" }
		oneAtATime(server.Client(nil), time.Minute, customer, work).ServeHTTP(httptest.NewRecorder(),
			httptest.NewRequest("POST", "/", nil))
		if !errors.Is(cause, holdfast.ErrLost) {
			t.Errorf("the context of a request whose lease is lost ended with %v", cause)
		}
	})
}
