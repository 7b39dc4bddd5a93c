package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A leader that fails to renew is unhealthy until a renewal is confirmed again, or until it no
// longer leads.
func TestElectionCheck(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		election := client.Election("e")
		lease := w.must(election.Campaign(t.Context()))
		<-time.After(time.Minute)
		must(t, election.Check())
		sent.on("renew", loseAll)
		<-time.After(6 * time.Second)
		if err := election.Check(); !errors.Is(err, holdfast.ErrUnavailable) || lease.Err() != nil {
			t.Errorf("Check: %v; the lease: %v", err, lease.Err())
		}
		sent.on("renew", nil)
		<-time.After(time.Second)
		must(t, election.Check())
		must(t, lease.Err())
		w.release(lease)

		// A leader whose fn does not return after a loss stays unhealthy.
		finish, ended := make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			_ = election.Run(ctx, func(context.Context) error { <-finish; return nil })
		}()
		synctest.Wait()
		sent.on("renew", loseAll)
		<-time.After(time.Minute)
		if err := election.Check(); !errors.Is(err, holdfast.ErrLost) || strings.Contains(err.Error(), "leading") {
			t.Errorf("Check of one that hangs: %v", err)
		}
		sent.on("renew", nil)
		if err := election.Check(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Check of one that hangs: %v", err)
		}
		cancel()
		close(finish)
		<-ended
		must(t, election.Check())
	})
}

// A fn that resigns at once does not make its election spin.
func TestElectionRunDoesNotSpin(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		terms := 0
		err := client.Election("e").Run(ctx, func(context.Context) error { terms++; return nil })
		if !errors.Is(err, context.DeadlineExceeded) || terms < 50 || terms > 76 {
			t.Errorf("%d terms in a minute, %v", terms, err)
		}
	})
}
