package otelholdfast

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast/shard"
)

// ObserveShards has a meter tell of the shards that this process has, until the registration is
// given back. The sets have different names.
func ObserveShards(meter metric.Meter, sets ...*shard.Set) (metric.Registration, error) {
	var failures []error
	gauge := func(name, description string) metric.Int64ObservableUpDownCounter {
		c, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit("{shard}"),
			metric.WithDescription(description))
		failures = append(failures, err)
		return c
	}
	counter := func(name, description string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter(name, metric.WithUnit("{lease}"), metric.WithDescription(description))
		failures = append(failures, err)
		return c
	}
	shards := gauge("lock.shards", "Shards of the set, in all processes.")
	held := gauge("lock.shards.held", "Shards that this process has.")
	taken := counter("lock.shards.taken", "Leases of shards that this process got.")
	givenBack := counter("lock.shards.given_back", "Leases of shards that this process gave back.")
	lost := counter("lock.shards.lost", "Leases of shards that this process lost.")
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		for _, set := range sets {
			n := set.Counts()
			of := metric.WithAttributes(attribute.String("lock.set", strings.ToValidUTF8(n.Name, "\uFFFD")))
			to.ObserveInt64(shards, int64(n.Shards), of)
			to.ObserveInt64(held, int64(n.Held), of)
			to.ObserveInt64(taken, int64(n.Taken), of)
			to.ObserveInt64(givenBack, int64(n.GivenBack), of)
			to.ObserveInt64(lost, int64(n.Lost), of)
		}
		return nil
	}, shards, held, taken, givenBack, lost)
}
