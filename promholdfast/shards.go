package promholdfast

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast/shard"
)

// A ShardCollector is a prometheus.Collector for the shards that this process has. It sends
// nothing, and is safe for concurrent use.
type ShardCollector struct {
	sets                                 []*shard.Set
	shards, held, taken, givenBack, lost *prometheus.Desc // by set
}

var _ prometheus.Collector = (*ShardCollector)(nil)

// NewShardCollector makes a ShardCollector of sets with different names.
func NewShardCollector(sets ...*shard.Set) *ShardCollector {
	by := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"set"}, nil) }
	return &ShardCollector{
		sets:      sets,
		shards:    by("holdfast_shards", "Shards of the set, in all processes."),
		held:      by("holdfast_shards_held", "Shards that this process has."),
		taken:     by("holdfast_shards_taken_total", "Leases of shards that this process got."),
		givenBack: by("holdfast_shards_given_back_total", "Leases of shards that this process gave back."),
		lost:      by("holdfast_shards_lost_total", "Leases of shards that this process lost."),
	}
}

// Describe implements prometheus.Collector.
func (c *ShardCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.shards, c.held, c.taken, c.givenBack, c.lost} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *ShardCollector) Collect(out chan<- prometheus.Metric) {
	for _, set := range c.sets {
		n := set.Counts()
		tell := func(d *prometheus.Desc, kind prometheus.ValueType, value int) {
			out <- prometheus.MustNewConstMetric(d, kind, float64(value), labelValue(n.Name))
		}
		tell(c.shards, prometheus.GaugeValue, n.Shards)
		tell(c.held, prometheus.GaugeValue, n.Held)
		tell(c.taken, prometheus.CounterValue, n.Taken)
		tell(c.givenBack, prometheus.CounterValue, n.GivenBack)
		tell(c.lost, prometheus.CounterValue, n.Lost)
	}
}
