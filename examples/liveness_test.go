package examples_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
)

// With a liveness probe, Kubernetes restarts a leader that cannot renew its lease, or that lost it
// and goes on all the same. One failed renewal is no reason to restart, so let the probe fail some
// times in a row:
//
//	livenessProbe:
//	  httpGet: {path: /healthz, port: 8080}
//	  periodSeconds: 10
//	  failureThreshold: 3
//
// Do not use it as a readiness probe: a candidate that does not lead is well, and Check says so.
func Example_liveness() {
	server := serve()
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := holdfast.New(redisstore.New(rdb),
		&holdfast.Config{TTL: 6 * time.Second, ReleaseTimeout: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	election := client.Election("scheduler")

	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := election.Check(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	probe := func() int {
		w := httptest.NewRecorder()
		http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
		return w.Code
	}

	fmt.Println("not the leader:", probe())
	if _, err := election.Campaign(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the leader:", probe())
	server.Stop() // nothing is answered any more
	for began := time.Now(); time.Since(began) < 30*time.Second; <-time.After(time.Millisecond) {
		if code := probe(); code != http.StatusOK {
			fmt.Println("a leader that cannot renew:", code)
			break
		}
	}
	// Output:
	// not the leader: 200
	// the leader: 200
	// a leader that cannot renew: 500
}
