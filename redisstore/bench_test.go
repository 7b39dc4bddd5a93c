package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// BenchmarkOneRequest compares a command of the bare client with the same as a request of the
// store.
func BenchmarkOneRequest(b *testing.B) {
	srv, err := redisserver.Run(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = srv.Close() })
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	args := []any{"SET", "k", "v", "PX", 10000}

	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := rdb.Do(ctx, args...).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("store", func(b *testing.B) {
		st := routed(rdb)
		reqs := []wire.Request{{Args: args, Key: "k"}}
		b.ReportAllocs()
		for b.Loop() {
			if r := st.Do(ctx, reqs)[0]; r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	})
	b.Run("store, eight at once", func(b *testing.B) {
		st := routed(rdb)
		reqs := make([]wire.Request, 8)
		for i := range reqs {
			reqs[i] = wire.Request{Args: args, Key: "k"}
		}
		b.ReportAllocs()
		for b.Loop() {
			for _, r := range st.Do(ctx, reqs) {
				if r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		}
	})
}

// BenchmarkMessage measures from the sending of PUBLISH to the sink's hearing it.
func BenchmarkMessage(b *testing.B) {
	srv, err := redisserver.Run(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = srv.Close() })
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	st, ctx := routed(rdb), context.Background()
	heard := make(listener, 1)
	sub, err := st.Subscribe(ctx, heard)
	if err != nil {
		b.Fatal(err)
	}
	defer sub.Close()
	if err := sub.Add(ctx, "c"); err != nil {
		b.Fatal(err)
	}
	reqs := []wire.Request{{Args: []any{"PUBLISH", "c", "m"}}}
	b.ReportAllocs()
	for b.Loop() {
		if r := st.Do(ctx, reqs)[0]; r.Value != int64(1) {
			b.Fatal(r)
		}
		<-heard
	}
}

type listener chan struct{}

func (l listener) Message(string, string) { l <- struct{}{} }
func (listener) Gap()                     {}
