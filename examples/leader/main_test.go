package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// The leader is cut off from the server. First it is not ready, then its lease is lost, and its
// work goes on all the same, until somebody restarts it.
func TestProbesOfALeaderThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		election := server.Client(nil).Election("scheduler")
		handler := probes(election)
		check := func(when string, ready, healthy int) {
			t.Helper()
			for path, want := range map[string]int{"/readyz": ready, "/healthz": healthy} {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
				if w.Code != want {
					t.Errorf("%s, %s answers %d, want %d: %s", when, path, w.Code, want, w.Body)
				}
			}
		}

		check("a candidate", 200, 200)
		ctx, cancel := context.WithCancel(t.Context())
		leads, stops, ended := make(chan struct{}, 1), make(chan struct{}), make(chan error)
		go func() {
			ended <- election.Run(ctx, func(ctx context.Context) error {
				leads <- struct{}{}
				<-stops // looks at no context
				return ctx.Err()
			})
		}()
		<-leads
		check("the leader", 200, 200)
		server.Silence()
		<-time.After(10 * time.Second)
		check("a leader that cannot renew", 503, 200)
		<-time.After(10 * time.Second)
		check("a leader that goes on after the loss", 503, 503)
		cancel()
		close(stops)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		check("after its work has stopped", 200, 200)
		server.Resume()
	})
}
