// Package profholdfast shows where a process waits for locks, as a profile for go tool pprof. It is
// like the mutex profile of package runtime/pprof.
//
//	profile := profholdfast.New()
//	client, err := holdfast.New(store, &holdfast.Config{Observer: profile})
//	...
//	http.Handle("/debug/holdfast", profile)
//
//	go tool pprof http://localhost:8080/debug/holdfast
//
// Its samples are the calls that had to wait, those that gave up too, and their delay. They have
// the stack of the call of Lock, and two labels:
//
//	kind   mutex, rwmutex, semaphore or election
//	class  what holdfast.Config.Class makes of the name; absent if that is empty
//
// The profiles of several processes can be merged: go tool pprof takes several at once. A call that
// does not wait costs nothing but the event.
package profholdfast

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"github.com/holdfast-go/holdfast"
)

const (
	maxSamples = 1000 // stacks that are told apart, with their labels
	maxDepth   = 64   // frames of a stack, those of package holdfast among them
)

// A Profile is a holdfast.Observer that sums up the time of waiting since New. It is safe for
// concurrent use, also by several clients. It tells 1,000 stacks apart. When one more comes, that
// with the least time is counted among the "others", which have no stack.
//
// An Observer that calls this one must call it in the same goroutine, as the stack is that of the
// call of Observe.
type Profile struct {
	began time.Time

	mu     sync.Mutex
	totals map[sample]total
	others total
}

// A sample is what is told apart.
type sample struct {
	stack [maxDepth]uintptr // the innermost call first
	kind  string
	class string
}

// A total is what the calls of a sample add up to.
type total struct {
	waits int64
	delay time.Duration
}

func (t *total) add(more total) {
	t.waits += more.waits
	t.delay += more.delay
}

// New makes an empty Profile.
func New() *Profile { return &Profile{began: time.Now(), totals: make(map[sample]total)} }

// Observe implements holdfast.Observer.
func (p *Profile) Observe(e holdfast.Event) {
	switch {
	case !e.Contended:
	case e.Kind == holdfast.EventGranted, e.Kind == holdfast.EventPassed, e.Kind == holdfast.EventGaveUp:
		s := sample{kind: e.LockKind, class: e.Class}
		runtime.Callers(2, s.stack[:])
		p.add(s, total{1, e.Waited})
	}
}

func (p *Profile) add(s sample, more total) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum, known := p.totals[s]
	if !known && len(p.totals) >= maxSamples {
		p.moveLeastToOthers()
	}
	sum.add(more)
	p.totals[s] = sum
}

// moveLeastToOthers makes room for a sample. The mutex is held.
func (p *Profile) moveLeastToOthers() {
	var least sample
	first := true
	for s, sum := range p.totals {
		if first || sum.delay < p.totals[least].delay {
			least, first = s, false
		}
	}
	p.others.add(p.totals[least])
	delete(p.totals, least)
}

// WriteTo writes the profile as it is now, compressed. The error is that of w.
func (p *Profile) WriteTo(w io.Writer) (n int64, err error) {
	var written bytes.Buffer
	if err := p.snapshot().Write(&written); err != nil {
		return 0, err
	}
	return written.WriteTo(w)
}

// ServeHTTP serves the profile as a file. It asks nobody who may read it: functions, files and
// classes are told.
func (p *Profile) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="holdfast.pb.gz"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = p.WriteTo(w) // the reader has gone
}

// snapshot returns the profile as it is now, in the form of package pprof.
func (p *Profile) snapshot() *profile.Profile {
	delay := &profile.ValueType{Type: "delay", Unit: "nanoseconds"}
	out := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "waits", Unit: "count"}, delay},
		DefaultSampleType: delay.Type,
		TimeNanos:         p.began.UnixNano(),
		DurationNanos:     int64(time.Since(p.began)),
		PeriodType:        delay,
		Period:            1,
	}
	totals, others := p.sumSamples()
	for s, sum := range totals {
		addSample(out, callersOfHoldfast(s.stack[:]), sum, newLabels(s))
	}
	if others.waits > 0 {
		addSample(out, []runtime.Frame{{Function: "others"}}, others, nil)
	}
	return out.Compact()
}

func (p *Profile) sumSamples() (totals map[sample]total, others total) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.totals), p.others
}

func newLabels(s sample) map[string][]string {
	out := map[string][]string{"kind": {s.kind}}
	if s.class != "" {
		out["class"] = []string{s.class}
	}
	return out
}

// addSample adds a sample to a profile. Each of its frames, the innermost first, gets a location
// and a function of its own: Profile.Compact makes one of those that are equal.
func addSample(to *profile.Profile, frames []runtime.Frame, sum total, labels map[string][]string) {
	sample := &profile.Sample{Value: []int64{sum.waits, int64(sum.delay)}, Label: labels}
	for _, frame := range frames {
		id := uint64(len(to.Location) + 1)
		function := &profile.Function{
			ID: id, Name: frame.Function, SystemName: frame.Function, Filename: frame.File}
		location := &profile.Location{ID: id, Line: []profile.Line{{Function: function, Line: int64(frame.Line)}}}
		to.Function, to.Location = append(to.Function, function), append(to.Location, location)
		sample.Location = append(sample.Location, location)
	}
	to.Sample = append(to.Sample, sample)
}

// callersOfHoldfast returns the frames of a stack from the caller of package holdfast on. Above
// holdfast may be an observer that called this one. A stack without holdfast is kept whole.
func callersOfHoldfast(counters []uintptr) []runtime.Frame {
	if end := slices.Index(counters, 0); end >= 0 {
		counters = counters[:end]
	}
	var all []runtime.Frame
	for frames, more := runtime.CallersFrames(counters), true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		all = append(all, frame)
	}
	called := slices.IndexFunc(all, isOwnFrame)
	if called < 0 {
		return all
	}
	caller := slices.IndexFunc(all[called:], func(f runtime.Frame) bool { return !isOwnFrame(f) })
	if caller < 0 {
		return all
	}
	return all[called+caller:]
}

// isOwnFrame reports whether a call is one of package holdfast, or of a package inside it.
func isOwnFrame(f runtime.Frame) bool {
	const root = "github.com/holdfast-go/holdfast"
	return strings.HasPrefix(f.Function, root+".") || strings.HasPrefix(f.Function, root+"/internal/")
}
