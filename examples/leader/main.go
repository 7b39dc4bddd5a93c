// Command leader is a scheduler of which one process leads, with the probes of Kubernetes. The
// Deployment of deploy/kubernetes/leader.yaml runs it:
//
//	export REDIS_URL=redis://localhost:6379
//	go run ./examples/leader :8080
//	curl localhost:8080/readyz
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: leader ADDRESS")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run serves the probes and campaigns until ctx ends.
func run(ctx context.Context, addr string) error {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		// The error of ParseURL may show the password.
		return errors.New("REDIS_URL must look like redis://USER:PASSWORD@HOST:PORT/DB")
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	client, err := holdfast.New(redisstore.New(rdb), nil)
	if err != nil {
		return err
	}
	defer client.Close()
	election := client.Election("scheduler")

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("serving on", listener.Addr())
	server := &http.Server{Handler: probes(election), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	// Check does not report that Run has ended: the process ends with it.
	if err := election.Run(ctx, schedule); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// schedule is the work of the leader. It stops when the lease is lost.
func schedule(ctx context.Context) error {
	fmt.Println("this process schedules")
	<-ctx.Done()
	return ctx.Err()
}

// probes tell Kubernetes how this candidate is. A candidate that waits is ready: it can take over.
// A leader whose last renewal failed is not ready; that may pass. Work that goes on after its lease
// was lost may not pass by itself, so that the process is restarted.
func probes(election *holdfast.Election) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, election.Check())
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		err := election.Check()
		if !errors.Is(err, holdfast.ErrLost) {
			err = nil
		}
		answer(w, err)
	})
	return mux
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
