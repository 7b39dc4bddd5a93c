package holdfast_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// tries has a try of each type that gives leases, for one name or more.
var tries = map[string]func(c *holdfast.Client, name string, permits int64, o ...holdfast.Option) (
	*holdfast.Lease, error){
	"Mutex": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.Mutex(name, o...).TryLock(context.Background())
	},
	"RWMutex": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.RWMutex(name, o...).TryLock(context.Background())
	},
	"RWMutex, to read": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.RWMutex(name, o...).TryRLock(context.Background())
	},
	"Semaphore": func(c *holdfast.Client, name string, permits int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.Semaphore(name, permits, o...).TryAcquire(context.Background(), permits)
	},
	"Election": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.Election(name, o...).TryCampaign(context.Background())
	},
	"Group": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.All([]string{name, name + "x"}, o...).TryLock(context.Background())
	},
}

// firstErrorOf returns the error of the first method of a handle of a type, made with an option.
func firstErrorOf(head string, c *holdfast.Client, option holdfast.Option) error {
	switch head {
	case "Latch":
		return c.Latch("n", option).Set(context.Background(), 0)
	case "RWMutex":
		return errors.Join(releaseAtOnce(tries[head](c, "n", 1, option)),
			releaseAtOnce(tries[head+", to read"](c, "n", 1, option)))
	}
	return releaseAtOnce(tries[head](c, "n", 1, option))
}

// releaseAtOnce gives the lease back.
func releaseAtOnce(lease *holdfast.Lease, err error) error {
	if err != nil {
		return err
	}
	return lease.Release()
}

// TestOptions compares the table at Option with what the types refuse.
func TestOptions(t *testing.T) {
	options := map[string]holdfast.Option{
		"WithTTL": holdfast.WithTTL(time.Minute), "WithoutRenewal": holdfast.WithoutRenewal(),
		"WithMaxHold": holdfast.WithMaxHold(time.Minute),
		"WithMinHold": holdfast.WithMinHold(1), "WithPolling": holdfast.WithPolling(time.Millisecond, 1),
		"WithOwner":       holdfast.WithOwner("o"),
		"WithStrictOrder": holdfast.WithStrictOrder(), "WithLabel": holdfast.WithLabel("l"),
		"WithWait":          holdfast.WithWait(time.Minute),
		"WithDeadlockCheck": holdfast.WithDeadlockCheck(),
		"WithUnder":         holdfast.WithUnder(map[string]int64{"n": 1}),
		"WithRetain":        holdfast.WithRetain(time.Second),
		"WithoutRecall":     holdfast.WithoutRecall(), "WithWanted": holdfast.WithWanted(),
	}
	text, err := os.ReadFile("options.go")
	must(t, err)
	declared := regexp.MustCompile(`(?m)^func (With\w+)\(.*\) Option`)
	for _, page := range []string{"README.md", "README.zh-CN.md"} {
		list, err := os.ReadFile(page)
		must(t, err)
		for _, option := range declared.FindAllStringSubmatch(string(text), -1) {
			if options[option[1]] == nil || !strings.Contains(string(list), "`"+option[1]+"`") {
				t.Errorf("%s is not tested here, or not in %s", option[1], page)
			}
		}
	}
	var heads, rows []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(line, "//"))
		switch {
		case heads == nil && len(fields) > 1 && fields[0] == "Mutex" && fields[1] == "RWMutex":
			heads = fields
		case len(fields) == len(heads)+1 && options[fields[0]] != nil:
			rows = append(rows, fields[0])
			for i, head := range heads {
				client, err := holdfast.NewOn(
					memory.New(protocol.Features{Queue: true}).Connect("p"), nil)
				must(t, err)
				err = firstErrorOf(head, client, options[fields[0]])
				if cell := fields[i+1]; cell == "yes" && err != nil || cell == "-" && !refuses(err, fields[0]) ||
					cell != "yes" && cell != "-" {
					t.Errorf("%s on %s is %q in the table, and: %v", fields[0], head, cell, err)
				}
				must(t, client.Close())
			}
		}
	}
	want := []string{"Election", "Group", "Latch", "Mutex", "RWMutex", "Semaphore"}
	if !slices.Equal(slices.Sorted(slices.Values(heads)), want) {
		t.Errorf("the table has the columns %q, want %q", heads, want)
	}
	if want := slices.Sorted(maps.Keys(options)); !slices.Equal(slices.Sorted(slices.Values(rows)), want) {
		t.Errorf("the table has the rows %q, want %q", rows, want)
	}
}

// refuses reports whether an error is an *ArgumentError about this option alone.
func refuses(err error, option string) bool {
	var bad *holdfast.ArgumentError
	return errors.As(err, &bad) && len(bad.Problems) == 1 && bad.Problems[0].Argument == option
}

// WithWait ends every wait at its time, with an error of its own, and leaves ctx as it was. The
// waiting of a whole group counts. As the last answer said that another holds, the error matches
// ErrHeld and names the holder, as that of a try does. Nobody holds what a latch waits for.
func TestWithWait(t *testing.T) {
	const most = 3 * time.Second
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		other, _ := w.client()
		holdAll(w, other)
		r := newRig(w, client)
		r.options = []holdfast.Option{holdfast.WithWait(most)}
		for name, call := range r.calls() {
			if call.waits < waitsBounded {
				continue
			}
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			err := call.do(ctx)
			var waited *holdfast.WaitError
			if !errors.As(err, &waited) || !errors.Is(err, holdfast.ErrWaitOver) ||
				waited.Reason != holdfast.WaitOver || waited.Waited != most {
				t.Errorf("%s: %v", name, err)
			}
			var held *holdfast.HeldError
			if isHeld := name != "Latch.Wait"; errors.Is(err, holdfast.ErrHeld) != isHeld ||
				errors.As(err, &held) != isHeld {
				t.Errorf("%s: %v: held %+v", name, err, held)
			} else if isHeld && (held.Holder != waited.Holder || held.Holder == "" || held.Token != waited.Token ||
				held.Kind == "" || held.Name != waited.Name) {
				t.Errorf("%s: %+v", name, held)
			}
			if n := strings.Count(err.Error(), "held by"); n > 1 {
				t.Errorf("%s: %v says it %d times", name, err, n)
			}
			for _, other := range []error{holdfast.ErrUnavailable, context.DeadlineExceeded, context.Canceled} {
				if errors.Is(err, other) {
					t.Errorf("%s: %v matches %v", name, err, other)
				}
			}
			if took := time.Since(start); took != most || ctx.Err() != nil {
				t.Errorf("%s: it took %v, and ctx: %v", name, took, ctx.Err())
			}
			cancel()
		}
	})
}

// A wait without any answer is no "busy": the server is away. So it is behind a goroutine that
// waits for the same answer, and if the time is over before a request is. Once there was an answer,
// its word counts, and the error says also that the server was away at last (trap 22).
func TestWithWaitAtSilentServer(t *testing.T) {
	for what, test := range map[string]struct {
		most     time.Duration
		answered bool // the first request
	}{
		"long": {most: 5 * time.Second}, "short": {most: 20 * time.Millisecond},
		"answered once": {most: 10 * time.Second, answered: true},
	} {
		for name, call := range new(rig).calls() {
			// A latch is held by nobody, and the first name of a group by this client.
			heldByOther := name != "Latch.Wait" && !strings.HasPrefix(name, "Group.")
			if call.waits < waitsBounded || test.answered && !heldByOther {
				continue
			}
			runInWorld(t, name+", "+what, func(t *testing.T, w world) {
				client, sent := w.client()
				other, _ := w.client()
				holdAll(w, other)
				r := newRig(w, client)
				r.options = []holdfast.Option{holdfast.WithWait(test.most)}
				silent := beSilent(0, newFailure(protocol.NoAnswer, os.ErrDeadlineExceeded))
				defer sent.on("", nil)
				if !test.answered {
					sent.on("", silent)
				}
				ended := make(chan error, 2)
				for range cap(ended) {
					go func() { ended <- r.calls()[name].do(t.Context()) }()
					synctest.Wait()
				}
				sent.on("", silent)
				for range cap(ended) {
					err := <-ended
					if errors.Is(err, holdfast.ErrHeld) != test.answered ||
						errors.Is(err, holdfast.ErrWaitOver) != test.answered ||
						!errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					if waited := (*holdfast.WaitError)(nil); !errors.As(err, &waited) ||
						waited.Waited != test.most {
						t.Errorf("got %+v", err)
					}
				}
			})
		}
	}
}

// Of ctx, WithWait and Config.Wait one ends a wait, with its own error: ctx if it is the shortest,
// or else WithWait. Config.Wait counts for a Mutex, an RWMutex, a Semaphore and a Group alone.
func TestWithWaitBesideOtherBounds(t *testing.T) {
	for name, c := range map[string]struct {
		options []holdfast.Option
		config  time.Duration
		ctx     time.Duration
		over    waitKind      // calls of this kind and above end by the time to wait, others by ctx
		wait    time.Duration // of these
	}{
		"ctx first": {options: []holdfast.Option{holdfast.WithWait(time.Minute)}, ctx: time.Second,
			over: waitsByConfig + 1},
		"Config.Wait first": {config: 2 * time.Second, ctx: time.Minute, over: waitsByConfig, wait: 2 * time.Second},
		"WithWait beside Config.Wait": {options: []holdfast.Option{holdfast.WithWait(5 * time.Second)},
			config: 2 * time.Second, ctx: time.Minute, over: waitsBounded, wait: 5 * time.Second},
	} {
		runInWorld(t, name, func(t *testing.T, w world) {
			other, _ := w.client()
			holdAll(w, other)
			client, _ := w.clientWith(&holdfast.Config{Wait: c.config})
			r := newRig(w, client)
			r.options = c.options
			for name, call := range r.calls() {
				if call.waits < waitsBounded {
					continue
				}
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), c.ctx)
				err := call.do(ctx)
				cancel()
				want, took, over := context.DeadlineExceeded, c.ctx, call.waits >= c.over
				if over {
					want, took = holdfast.ErrWaitOver, c.wait
				}
				if !errors.Is(err, want) || !over && (errors.Is(err, holdfast.ErrWaitOver) ||
					errors.Is(err, holdfast.ErrHeld)) || time.Since(start) != took {
					t.Errorf("%s: %v after %v, want %v after %v", name, err, time.Since(start), want, took)
				}
			}
		})
	}
}

// A goroutine waits in the pool of its process no longer than WithWait says, also behind a leader
// that waits longer, and after it became the leader. No waiter behind it is held up.
func TestWithWaitInPool(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		other, _ := w.client()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // longer than all of them wait
		defer cancel()
		lease := w.must(other.Mutex("m").Lock(ctx))
		start, ended := time.Now(), make(chan error, 3)
		for _, most := range []time.Duration{4 * time.Second, 2 * time.Second, 6 * time.Second} {
			go func() {
				_, err := client.Mutex("m", holdfast.WithWait(most)).Lock(ctx)
				if took := time.Since(start); took != most {
					t.Errorf("WithWait(%v) ended after %v", most, took)
				}
				ended <- err
			}()
			synctest.Wait()
		}
		got := make(chan error, 1)
		go func() { got <- releaseAtOnce(client.Mutex("m").Lock(t.Context())) }()
		for range cap(ended) {
			if err := <-ended; !errors.Is(err, holdfast.ErrWaitOver) {
				t.Error(err)
			}
		}
		w.release(lease)
		must(t, <-got)
	})
}

// With Do, ctx bounds the waiting and the work, and WithWait the waiting alone.
func TestWithWaitDoesNotBoundWork(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		must(t, client.Mutex("m", holdfast.WithWait(time.Second)).Do(t.Context(), func(ctx context.Context) error {
			<-time.After(time.Minute)
			if _, bounded := ctx.Deadline(); bounded {
				t.Error("the work has a deadline")
			}
			return ctx.Err()
		}))
	})
}
