package quorum

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/storetest"
)

// apart starts three masters, whose clocks show 1970, 2000 and today.
func apart(t *testing.T) (*rig, []*redisserver.Clock) {
	t.Helper()
	r := &rig{T: t, dir: t.TempDir()}
	clocks := []*redisserver.Clock{r.clocked(), r.clocked(), r.clocked()}
	clocks[0].Show(time.Unix(0, 0))
	clocks[1].Show(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	return r, clocks
}

// TestMastersShowAnyTime: the clocks of three masters show 1970, 2000 and today, and then all
// change places, one after the other.
func TestMastersShowAnyTime(t *testing.T) {
	long(t)
	r, clocks := apart(t)
	r.found()
	watch := r.client(nil, nil)
	holds := r.under([]*lag{nil, nil, nil, nil}, func() {
		r.pass(3 * time.Second)
		for i, at := range []time.Time{time.Now(), time.Unix(0, 0), time.Unix(0, 0)} {
			clocks[i].Show(at)
			r.pass(time.Second)
			r.whole(watch) // one that was set forward has begun its memory anew
		}
	})
	t.Logf("%d holds\n%v", holds, r.check())
	if holds < 100 {
		t.Errorf("%d holds: too few to show anything", holds)
	}
}

// TestReadersInTheFirstHalfSecond: a master whose clock shows the very beginning of 1970 lets a
// reader in beside a reader, where no other can make up for it.
func TestReadersInTheFirstHalfSecond(t *testing.T) {
	long(t)
	r, clocks := apart(t)
	clocks[0].Stop(time.UnixMicro(200_000))
	r.found()
	a, b := r.client(nil, nil), r.client(nil, nil)
	warm(r, a)
	warm(r, b)
	first, err := a.RWMutex("rw").RLock(r.within())
	if err != nil {
		t.Fatal(err)
	}
	r.masters[2].Stop()
	second, err := b.answered(b.RWMutex("rw").TryRLock)
	if err != nil {
		t.Errorf("a reader beside a reader: %v", err)
	}
	r.masters[2].Continue()
	for _, lease := range []*holdfast.Lease{first, second} {
		if lease != nil {
			_ = lease.Release()
		}
	}
	r.check()
}

// within is a context for one step.
func (r *rig) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.Cleanup(cancel)
	return ctx
}

// answered tries something until a majority answers.
func (w *worker) answered(try func(context.Context) (*holdfast.Lease, error)) (lease *holdfast.Lease, err error) {
	w.r.Helper()
	w.r.until("a majority answers", func() bool {
		lease, err = try(w.r.within())
		return !unanswered(err)
	})
	return lease, err
}

// TestConformanceOfMastersApart: all that a quorum promises, it promises whatever its masters'
// clocks show.
func TestConformanceOfMastersApart(t *testing.T) {
	if !measured() {
		t.Skip("it takes a minute of its own: HOLDFAST_PROOF=1, as in make proof, runs it")
	}
	r, _ := apart(t)
	storetest.Run(t, storetest.Backend{
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			tb.Helper()
			var stores []store.Store
			var all []*redis.Client
			for _, master := range r.masters {
				all = append(all, redis.NewClient(&redis.Options{Addr: master.Addr()}))
				stores = append(stores, redisstore.New(all[len(all)-1]))
			}
			tb.Cleanup(func() {
				var err error
				for _, rdb := range slices.Backward(all) {
					err = errors.Join(err, rdb.Close())
				}
				if err != nil {
					tb.Error(err)
				}
			})
			config.TrustNewNodes = true
			c, err := holdfast.NewQuorum(stores, config)
			if err != nil {
				tb.Fatal(err)
			}
			return c
		},
		NoQueue:      true,
		NoSemaphores: true,
		NoLatches:    true,
	})
}
