package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/instant"
)

// BenchmarkOverhead is a pair of Lock and Release without a server. Retained, the name stays with
// the client; of readers, there are eight goroutines for each CPU.
func BenchmarkOverhead(b *testing.B) {
	client, err := holdfast.New(instant.Store{}, &holdfast.Config{TTL: 15 * time.Second})
	must(b, err)
	defer client.Close()
	mutex := client.Mutex("order:42")
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": cancellable} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lease, err := mutex.Lock(ctx)
				must(b, err)
				must(b, lease.Release())
			}
		})
	}
	retaining, err := holdfast.NewOn(newServer().Connect("p"), nil)
	must(b, err)
	defer retaining.Close()
	retained := retaining.Mutex("order:42", holdfast.WithRetain(time.Minute))
	b.Run("retained", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			lease, err := retained.Lock(context.Background())
			must(b, err)
			must(b, lease.Release())
		}
	})
	shared := retaining.RWMutex("price:42", holdfast.WithRetain(time.Minute))
	b.Run("readers", func(b *testing.B) {
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				lease, err := shared.RLock(context.Background())
				must(b, err)
				must(b, lease.Release())
			}
		})
	})
	b.Run("handle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			client.Mutex("order:42")
		}
	})
}
