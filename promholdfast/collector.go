package promholdfast

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

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

	// Worst is how many names are told by name: those whose waiters wait for longest. At most
	// MaxWorst, as each name that is ever among them makes a series. Default: none.
	Worst int
}

// MaxWorst is the most that CollectorOptions.Worst can be.
const MaxWorst = 10

// A Collector is a prometheus.Collector for the locks of all processes. It is safe for concurrent
// use: scrapes at the same time share one listing.
type Collector struct {
	client  *holdfast.Client
	options CollectorOptions

	names, held, waiters, queue, oldest, wait, late *prometheus.Desc // by kind and class
	worst                                           *prometheus.Desc // by kind, class and name
	success, took                                   *prometheus.Desc

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
	o.Worst = min(o.Worst, MaxWorst)
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
		wait:    by("holdfast_longest_wait_seconds", "How long the waiter that waits for longest has waited."),
		late:    by("holdfast_late_holds", "Holds whose renewal is late by more than half a TTL."),
		worst: prometheus.NewDesc("holdfast_worst_wait_seconds",
			"The longest wait for a name, of the few names with the longest.", []string{"kind", "class", "name"}, nil),
		success: prometheus.NewDesc(
			"holdfast_list_success", "1 if the last listing was complete, 0 if it failed.", nil, nil),
		took: prometheus.NewDesc("holdfast_list_seconds", "How long the last listing took.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.names, c.held, c.waiters, c.queue, c.oldest, c.wait, c.late, c.worst,
		c.success, c.took} {
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
			gauge(c.wait, f.wait.Seconds())
			gauge(c.late, float64(f.late))
		}
		for _, w := range last.worst {
			out <- prometheus.MustNewConstMetric(c.worst, prometheus.GaugeValue, w.wait.Seconds(),
				w.kind, w.class, w.name)
		}
	}
	out <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, success)
	out <- prometheus.MustNewConstMetric(c.took, prometheus.GaugeValue, last.took.Seconds())
}

type listing struct {
	at      time.Time // when it ended; zero: there was none
	took    time.Duration
	figures map[lockKey]figures
	worst   []worstName // the longest wait first
	err     error
}

// figures are those of one kind and class.
type figures struct {
	names, held, waiters, queue, late int
	oldest, wait                      time.Duration
}

// lastListing returns the last listing, or makes one if that is too old.
func (c *Collector) lastListing() listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.at.IsZero() && time.Since(c.last.at) < c.options.Every {
		return c.last
	}
	begin := time.Now()
	c.last = c.listNames()
	c.last.at, c.last.took = time.Now(), time.Since(begin)
	return c.last
}

// listNames counts all names. A name that is told twice is counted once: by its key while one
// listing lasts.
func (c *Collector) listNames() (out listing) {
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Timeout)
	defer cancel()
	out.figures = map[lockKey]figures{}
	told := map[string]struct{}{}
	for info, err := range c.client.List(ctx, holdfast.ListOptions{Pattern: c.options.Pattern}) {
		if err != nil {
			return listing{err: err}
		}
		if _, again := told[info.Name]; again || info.State() == lockinfo.StateForeign {
			continue
		}
		told[info.Name] = struct{}{}
		key := lockKey{string(info.Kind), info.Class}
		out.figures[key] = out.figures[key].addName(info)
		out.worst = c.addWorst(out.worst, key, info)
	}
	return out
}

func (f figures) addName(info lockinfo.Info) figures {
	f.names++
	f.waiters += info.Waiters
	f.queue = max(f.queue, info.Waiters)
	f.wait = max(f.wait, info.LongestWait())
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

type worstName struct {
	lockKey
	name string // as the value of a label
	wait time.Duration
}

func (c *Collector) addWorst(worst []worstName, key lockKey, info lockinfo.Info) []worstName {
	added := worstName{key, labelValue(info.Name), info.LongestWait()}
	if c.options.Worst <= 0 || info.WaitingSince.IsZero() || slices.ContainsFunc(worst,
		func(w worstName) bool { return w.name == added.name }) { // a scrape with one series twice fails
		return worst
	}
	at, _ := slices.BinarySearchFunc(worst, added, func(a, b worstName) int {
		return cmp.Or(cmp.Compare(b.wait, a.wait), cmp.Compare(a.name, b.name))
	})
	worst = slices.Insert(worst, at, added)
	return worst[:min(len(worst), c.options.Worst)]
}

// labelValue returns a name as the value of a label, which must be UTF-8: quoted if it is none.
func labelValue(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.Quote(name)
}
