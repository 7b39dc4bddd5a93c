package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// Free names before and after a held name cost a request each, however many names there are.
func TestGroupAroundHeldNameCostsThreeRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		other, _ := w.client()
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprintf("%04d", i)
		}
		held := w.must(other.Mutex(names[500]).Lock(t.Context()))
		done := make(chan error, 1)
		go func() { done <- releaseAtOnce(client.All(names).Lock(t.Context())) }()
		synctest.Wait()
		for _, name := range []string{names[0], names[499]} {
			if _, err := other.Mutex(name).TryLock(t.Context()); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.release(held)
		must(t, <-done)
		if n := sent.count("ask all"); n != 3 {
			t.Errorf("%d requests for many, want 3", n)
		}
	})
}

// Free names cost one request, however many there are. A lost answer leaves nothing held.
func TestGroupAnswerLostLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		other, _ := w.client()
		names := []string{"a", "b", "c"}
		must(t, releaseAtOnce(client.All(names).Lock(t.Context())))
		if n := sent.count("ask all"); n != 1 {
			t.Errorf("%d requests", n)
		}
		sent.on("ask all", loseNext(1))
		began := time.Now()
		_, err := client.All(names).TryLock(t.Context())
		var failed *holdfast.StoreError
		if !errors.As(err, &failed) || !failed.MayHaveApplied {
			t.Errorf("got %v", err)
		}
		sent.on("ask all", loseNext(1))
		lease := w.must(client.All(names).Lock(t.Context()))
		must(t, lease.Check(t.Context()))
		w.release(lease)
		must(t, releaseAtOnce(other.All(names).Lock(t.Context())))
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("what was won without knowing stayed: %v", took)
		}
	})
}

// An answer that comes when its trust is over is no lease. The hold that it won is given back, with
// a min hold or without.
func TestGroupAnsweredLateIsGivenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		other, _ := w.client()
		sent.on("ask all", func(_ context.Context, _ int64, send func() error) error {
			err := send()
			<-time.After(16 * time.Second)
			return err
		})
		_, err := client.All([]string{"a", "b"}, holdfast.WithMinHold(time.Minute),
			holdfast.WithTTL(15*time.Second)).TryLock(t.Context())
		if !errors.As(err, new(*holdfast.StoreError)) || !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		must(t, releaseAtOnce(other.All([]string{"a", "b"}).TryLock(t.Context())))
	})
}

// A lease whose parts are renewed together is lost when one renewal after another fails, before any
// part is free.
func TestGroupLostBeforeAnyPartIsFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		other, _ := w.client()
		lease := w.must(client.All([]string{"a", "b"}).Lock(t.Context()))
		<-time.After(time.Minute)
		sent.on("renew", loseAll)
		next := w.must(other.All([]string{"b", "c"}).Lock(t.Context()))
		if !errors.Is(lease.Err(), holdfast.ErrLost) || leased.Context(lease).Err() == nil {
			t.Errorf("another holds b, and the lease is %v", lease.Err())
		}
		w.release(next)
	})
}
