package workload

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// A Run is one workload: its processes, its faults, and how long it goes on.
type Run struct {
	Plan
	Command func() *exec.Cmd // makes a program that finds its plan in Env and calls Worker
	For     time.Duration
	Procs   int
	Server  Server // to be troubled as well

	parent   *history.Recorder
	resource *Resource

	mu      sync.Mutex
	counts  Counts
	ended   []string // workers that were not killed
	forever []string // keys that had no expiry at some moment
	looks   int      // for such keys
	failed  []error
}

// Counts are the faults of a run.
type Counts struct {
	Kills, Stops, LongStops int // of processes; LongStops: past the longest TTL
	Mutes                   int // of the network of a process
	Freezes, Cuts           int // of the server, and of all its connections
}

// A Report is what came out of a run.
type Report struct {
	history.Summary
	Counts
	Resource   judge.Accesses
	Rest       Rest
	Violations []history.Violation
	History    *history.History
}

// Do starts the processes, troubles them, waits for their end and checks what they wrote. An error
// is trouble of the run itself; what the locks did wrong is in the report. Do takes For and some
// seconds.
func (r *Run) Do(ctx context.Context) (report Report, err error) {
	if r.parent, err = history.Create(r.Dir, "parent"); err != nil {
		return Report{}, err
	}
	end := time.Now().Add(r.For)
	slots, err := r.makeSlots(end)
	if err != nil {
		return Report{}, errors.Join(err, r.parent.Close())
	}
	r.resource, err = NewResource(func(slot int, long time.Duration) {
		if time.Until(end) > quiet+long {
			slots[slot].silence(long)
		}
	})
	if err != nil {
		return Report{}, errors.Join(err, r.parent.Close())
	}
	r.Resource = r.resource.Addr()
	var wg sync.WaitGroup
	for _, s := range slots {
		wg.Go(func() { r.fail(s.keepAlive(ctx)) })
	}
	wg.Go(func() { r.troubleServer(ctx, end) })
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		var err error
		r.forever, r.looks, err = watchExpiries(watching, r.Plan)
		r.fail(err)
	})
	watcher.Go(func() { r.fail(r.recordServerStalls(watching)) })
	wg.Wait()
	stop()
	watcher.Wait()
	r.fail(errors.Join(r.parent.Close(), r.resource.Close()))
	if len(r.failed) > 0 {
		// The history may tell more than the first error, so both are reported.
		err = fmt.Errorf("workload: %d failures, the first: %w", len(r.failed), r.failed[0])
	}
	return r.report(ctx, err)
}

func (r *Run) makeSlots(end time.Time) ([]*slot, error) {
	slots := make([]*slot, r.Procs)
	for i := range slots {
		proxy, err := fault.Listen(r.Addr)
		if err != nil {
			for _, s := range slots[:i] {
				s.proxy.Close()
			}
			return nil, err
		}
		slots[i] = &slot{run: r, index: i, dice: newDice(r.Seed, uint64(i)), end: end, proxy: proxy}
	}
	return slots, nil
}

func (r *Run) report(ctx context.Context, failure error) (Report, error) {
	report := Report{Counts: r.counts, Resource: r.resource.Count()}
	var err error
	if report.Rest, err = findLeftKeys(ctx, r.Plan, r.ended); err != nil {
		return report, errors.Join(failure, err)
	}
	report.Rest.Forever, report.Rest.Looks = append(report.Rest.Forever, r.forever...), r.looks
	report.History, report.Violations, err = history.Judge(r.Dir, time.Second)
	if err != nil {
		return report, errors.Join(failure, err)
	}
	report.Rest.excuseLeaks(report.History.Disturbed)
	report.Summary = history.Summarize(report.History)
	return report, failure
}

func (r *Run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed = append(r.failed, err)
	}
}

func (r *Run) addCounts(add func(*Counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.counts)
}

// Broken returns what a run must not show: some twenty violations, but one of each rule at least,
// and what was left.
func (r Report) Broken() (texts []string) {
	const most = 20
	told := map[string]bool{}
	for i, v := range r.Violations {
		if i < most || !told[v.Rule] {
			texts = append(texts, fmt.Sprintf("violation %v", v))
		}
		told[v.Rule] = true
	}
	if more := len(r.Violations) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d violations more", more))
	}
	for _, text := range append(r.Rest.Leaked, r.Rest.Forever...) {
		texts = append(texts, "violation left: "+text)
	}
	return texts
}

// String returns the report in a few lines, without the violations.
func (r Report) String() string {
	return fmt.Sprintf("%v\n  faults   %d killed, %d stopped, %d of them past every TTL, %d cut off;"+
		" the server frozen %d times, its connections cut %d times\n"+
		"  resource %d writes, %d reads, %d late ones refused, of which %d would have destroyed another's; %d "+
		"updates lost\n"+
		"  server   %d names with places of the dead a TTL after the end; %d looks for keys without an expiry",
		r.Summary, r.Kills, r.Stops, r.LongStops, r.Mutes, r.Freezes, r.Cuts,
		r.Resource.Writes, r.Resource.Reads, r.Resource.Late, r.Resource.Spoiled, r.Resource.Lost,
		len(r.Rest.Dead), r.Rest.Looks)
}
