package promholdfast

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// CollectorOptions bound what a Collector costs. Nil or zero fields mean the defaults.
type CollectorOptions struct {
	// Pattern is a glob of Redis for the names. Default: all. It does not make a listing cheaper
	// for the server, which looks at each key.
	Pattern string

	// Timeout bounds one listing. Default: 10 s, which is how long Prometheus waits by default.
	Timeout time.Duration

	// Every is how often a listing is made at most. A scrape before that gets the figures of the
	// last one. Default: 15 s.
	Every time.Duration
}

// A Collector is a prometheus.Collector for the locks of all processes. It is safe for concurrent
// use: scrapes at the same time share one listing.
type Collector struct {
	client  *holdfast.Client
	options CollectorOptions

	names, held, waiters, queue, oldest, late *prometheus.Desc // by kind and class
	success, took                             *prometheus.Desc

	mu   sync.Mutex
	last listing
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector makes a Collector on a client, whose Config.Class makes the classes. Its user
// registers it, and keeps the client open.
func NewCollector(client *holdfast.Client, options *CollectorOptions) *Collector {
	var o CollectorOptions
	if options != nil {
		o = *options
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Every <= 0 {
		o.Every = 15 * time.Second
	}
	by := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"kind", "class"}, nil)
	}
	return &Collector{
		client: client, options: o,
		names:   by("holdfast_names", "Names that are held, waited for, or latches."),
		held:    by("holdfast_held_names", "Names that are held."),
		waiters: by("holdfast_queued_waiters", "Waiters in the queues of the server."),
		queue:   by("holdfast_longest_queue", "The most waiters of one name."),
		oldest:  by("holdfast_oldest_hold_seconds", "Age of the oldest hold."),
		late:    by("holdfast_late_holds", "Holds whose renewal is late by more than half a TTL."),
		success: prometheus.NewDesc(
			"holdfast_list_success", "1 if the last listing was complete, 0 if it failed.", nil, nil),
		took: prometheus.NewDesc("holdfast_list_seconds", "How long the last listing took.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.names, c.held, c.waiters, c.queue, c.oldest, c.late, c.success, c.took} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	last := c.lastListing()
	success := 0.0
	if last.err == nil {
		success = 1
		for key, f := range last.figures {
			gauge := func(d *prometheus.Desc, value float64) {
				out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, key.kind, key.class)
			}
			gauge(c.names, float64(f.names))
			gauge(c.held, float64(f.held))
			gauge(c.waiters, float64(f.waiters))
			gauge(c.queue, float64(f.queue))
			gauge(c.oldest, f.oldest.Seconds())
			gauge(c.late, float64(f.late))
		}
	}
	out <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, success)
	out <- prometheus.MustNewConstMetric(c.took, prometheus.GaugeValue, last.took.Seconds())
}

// A listing is what one List told.
type listing struct {
	at      time.Time // when it ended; zero: there was none
	took    time.Duration
	figures map[lockKey]figures
	err     error
}

// figures are those of one kind and class.
type figures struct {
	names, held, waiters, queue, late int
	oldest                            time.Duration
}

// lastListing returns the last listing, or makes one if that is too old.
func (c *Collector) lastListing() listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.at.IsZero() && time.Since(c.last.at) < c.options.Every {
		return c.last
	}
	begin := time.Now()
	all, err := c.listNames()
	c.last = listing{at: time.Now(), took: time.Since(begin), figures: all, err: err}
	return c.last
}

// listNames counts all names. A name that is told twice is counted once: by its key while one
// listing lasts.
func (c *Collector) listNames() (map[lockKey]figures, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Timeout)
	defer cancel()
	all, told := map[lockKey]figures{}, map[string]struct{}{}
	for info, err := range c.client.List(ctx, holdfast.ListOptions{Pattern: c.options.Pattern}) {
		if err != nil {
			return nil, err
		}
		if _, again := told[info.Name]; again || info.State() == lockinfo.StateForeign {
			continue
		}
		told[info.Name] = struct{}{}
		key := lockKey{string(info.Kind), info.Class}
		all[key] = all[key].addName(info)
	}
	return all, nil
}

// addName adds one name.
func (f figures) addName(info lockinfo.Info) figures {
	f.names++
	f.waiters += info.Waiters
	f.queue = max(f.queue, info.Waiters)
	held := false
	for _, h := range info.Holds {
		if h.State != lockinfo.StateHeld {
			continue
		}
		held = true
		if h.Late {
			f.late++
		}
		if !h.Since.IsZero() {
			f.oldest = max(f.oldest, info.At.Sub(h.Since))
		}
	}
	if held {
		f.held++
	}
	return f
}
