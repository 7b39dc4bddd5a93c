package faults

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/flight"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
)

const (
	flightProcesses = 10
	flightCallers   = 100
	flightTTL       = time.Second
)

// What becomes of the process that computes first in a round.
const (
	flightWell    = "nothing"
	flightFails   = "compute fails"
	flightKilled  = "killed"
	flightStopped = "stopped past its TTL"
	flightCut     = "cut off past its TTL"
	flightBroken  = "its hold broken"
)

var errFlight = errors.New("compute failed")

type flightLine struct {
	What       string // begin, end or done
	Token      int64
	At         int64 // of begin, and of the last step of compute under a trusted lease
	OK, Failed int   // callers
	Value      string
	child      int
}

// runFlights is a process with many callers of one name in each round. A line of input is the fault
// of a round and its name.
func runFlights(plan childPlan) error {
	client, closeAll, err := plan.Way.Open(&holdfast.Config{Prefix: plan.Prefix, TTL: flightTTL}, nil, nil)
	if err != nil {
		return err
	}
	defer func() { _ = closeAll() }()
	data := redis.NewClient(&redis.Options{Addr: plan.Data})
	defer data.Close()
	out := json.NewEncoder(os.Stdout) // one write a line
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		mode, name, _ := strings.Cut(in.Text(), "|")
		r := flightRound{mode: mode, name: name, data: data, say: func(l flightLine) { _ = out.Encode(l) }}
		done := flightLine{What: "done"}
		var mu sync.Mutex
		var all sync.WaitGroup
		for range plan.Names {
			all.Go(func() {
				value, err := flight.Do(context.Background(), client, name, r.read, r.compute)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, errFlight):
					done.Failed++
				case err != nil:
					fmt.Fprintln(os.Stderr, err)
				case done.Value == "" || done.Value == value:
					done.OK++
					done.Value = value
				}
			})
		}
		all.Wait()
		r.say(done)
	}
	return client.Close()
}

type flightRound struct {
	mode, name string
	data       *redis.Client
	say        func(flightLine)
}

func (r flightRound) read(ctx context.Context) (string, flight.State, error) {
	value, err := r.data.Get(ctx, "{"+r.name+"}").Result()
	if errors.Is(err, redis.Nil) {
		return "", flight.Stale, nil
	}
	return value, flight.Fresh, err
}

// compute works for as long as its lease is trusted, at least 20 ms. The first of a round works
// until the fault comes.
func (r flightRound) compute(ctx context.Context, token int64) (string, error) {
	begin := history.Now()
	first := r.data.Incr(context.WithoutCancel(ctx), "{"+r.name+"}:computes").Val() == 1
	r.say(flightLine{What: "begin", Token: token, At: begin})
	if first && r.mode == flightFails {
		return "", errFlight
	}
	lease, _ := holdfast.LeaseFrom(ctx)
	endless := first && r.mode != flightWell
	last := begin
	for ctx.Err() == nil && (endless || history.Now()-begin < int64(20*time.Millisecond)) {
		now := history.Now()
		if lease.Err() == nil {
			last = now
		}
		pause(time.Millisecond)
	}
	r.say(flightLine{What: "end", Token: token, At: last})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	value := fmt.Sprint(token)
	keys := []string{"{" + r.name + "}:fence", "{" + r.name + "}"}
	err := redis.NewScript(fence.RedisScript).Run(ctx, r.data, keys, token, "SET", value).Err()
	return value, fence.RedisError(err, r.name, token)
}

// flights are the processes of a test, each behind a proxy of its own.
type flights struct {
	srv     *redisserver.Server
	plan    childPlan
	proxies []*fault.Proxy
	all     []*harness.Process
	lines   chan flightLine
}

func (f *flights) start(t *testing.T, i int) {
	t.Helper()
	plan := f.plan
	plan.Way = harness.Route{Topology: harness.Single, Addrs: []string{f.proxies[i].Addr()}}
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	p := harness.Start(t, cmd)
	f.all[i] = p
	go func() {
		for {
			line := flightLine{child: i}
			if p.Lines.Decode(&line) != nil {
				return
			}
			f.lines <- line
		}
	}()
}

func (f *flights) next(t *testing.T, what string) flightLine {
	t.Helper()
	select {
	case line := <-f.lines:
		return line
	case <-time.After(harness.Patience):
		t.Fatalf("nothing is said for %v: %s", harness.Patience, what)
	}
	return flightLine{}
}

// round lets all processes call for one name, does the fault to the one that computes first, and
// judges what they say: no two steps of different leases cross, so many compute, and all who should
// get one value do.
func (f *flights) round(t *testing.T, mode, name string, operator *holdfast.Client) {
	t.Helper()
	for _, p := range f.all {
		if _, err := io.WriteString(p.Stdin, mode+"|"+name+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	type span struct{ token, from, to int64 }
	var spans []span
	var values []string
	computes, ok, failed, struck, missing := 0, 0, 0, -1, 0
	for done := 0; done+missing < flightProcesses; {
		line := f.next(t, mode)
		switch line.What {
		case "begin":
			spans = append(spans, span{line.Token, line.At, line.At})
			switch computes++; {
			case computes == 1:
				struck = line.child
				f.strike(t, mode, name, struck, operator)
				if mode == flightKilled {
					missing = 1
				}
			case mode == flightStopped:
				_ = harness.Thaw(f.all[struck].Process)
			case mode == flightCut:
				f.proxies[struck].Speak()
			}
		case "end":
			at := slices.IndexFunc(spans, func(s span) bool { return s.token == line.Token })
			spans[at].to = line.At
		case "done":
			done++
			ok, failed, values = ok+line.OK, failed+line.Failed, append(values, line.Value)
		}
	}
	if mode == flightKilled {
		f.start(t, struck)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(spans); i++ {
		if spans[i].from <= spans[i-1].to || spans[i].token <= spans[i-1].token {
			t.Errorf("%s: compute runs twice under trusted leases: %v", mode, spans)
		}
	}
	wantComputes, wantFailed, wantOK := 2, 0, flightProcesses*flightCallers
	switch mode {
	case flightWell:
		wantComputes = 1
	case flightFails:
		wantFailed, wantOK = flightCallers, wantOK-flightCallers
	case flightKilled:
		wantOK -= flightCallers
	}
	stored := fmt.Sprint(harness.Must(t, f.srv, "GET", "{"+name+"}"))
	for _, value := range values {
		if value != stored && value != "" {
			t.Errorf("%s: one got %q, and %q is stored", mode, value, stored)
		}
	}
	if computes != wantComputes || failed != wantFailed || ok != wantOK {
		t.Errorf("%s: %d computes, want %d; %d callers got the value, want %d; %d the error, want %d", mode, computes,
			wantComputes, ok, wantOK, failed, wantFailed)
	}
}

func (f *flights) strike(t *testing.T, mode, name string, child int, operator *holdfast.Client) {
	t.Helper()
	switch mode {
	case flightKilled:
		f.all[child].Kill()
	case flightStopped:
		if err := harness.Freeze(f.all[child].Process); err != nil {
			t.Skip(err)
		}
	case flightCut:
		f.proxies[child].Silence()
	case flightBroken:
		err := harness.Answered(t, func() error {
			info, err := operator.Inspect(t.Context(), name)
			if err != nil {
				return err
			}
			return operator.Break(t.Context(), name, info.Holds[0].Token)
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Ten processes with 100 callers each want one value, and something happens to the first that
// computes it. No two computes run under leases that are trusted at one moment, one runs next, and
// all get what it stored.
func TestFlight(t *testing.T) {
	harness.Long(t)
	srv := redisserver.Start(t)
	f := &flights{srv: srv, plan: childPlan{Flights: true, Prefix: "holdfast", Names: flightCallers, Data: srv.Addr()},
		all: make([]*harness.Process, flightProcesses), lines: make(chan flightLine)}
	for i := range f.all {
		f.proxies = append(f.proxies, fault.Start(t, srv.Addr()))
		f.start(t, i)
		t.Cleanup(func() { f.all[i].Kill() })
	}
	operator := harness.Locker(t, srv.Addr(), &holdfast.Config{})
	rounds := 3 * times(t)
	for _, mode := range []string{flightWell, flightFails, flightKilled, flightStopped, flightCut, flightBroken} {
		began := time.Now()
		for i := range rounds {
			f.round(t, mode, fmt.Sprint(mode, i), operator)
		}
		t.Logf("%s: %d rounds of %d callers in %d processes, %v a round", mode, rounds,
			flightProcesses*flightCallers, flightProcesses,
			(time.Since(began) / time.Duration(rounds)).Round(time.Millisecond))
	}
}

// A thousand clients wait for one value. One hand-over lets all in, within 100 ms: the best of five
// rounds, as they share the machine with the server.
func TestFlightThousandWaiters(t *testing.T) {
	harness.Long(t)
	const thousand = 1000
	srv := redisserver.Start(t)
	rdb := harness.Client(t, srv.Addr(), func(o *redis.Options) { o.PoolSize = 64 })
	var in, lastIn atomic.Int64
	observer := harness.Observer(func(e holdfast.Event) {
		if e.Kind == holdfast.EventGranted && e.Waited > 0 {
			in.Add(1)
			lastIn.Store(history.Now())
		}
	})
	leader := harness.Locker(t, srv.Addr(), &holdfast.Config{})
	var waiters []*holdfast.Client
	for range thousand {
		client := harness.Open(t, rdb, &holdfast.Config{Observer: observer})
		t.Cleanup(func() { _ = client.Close() })
		waiters = append(waiters, client)
	}
	best, fewest := time.Hour, 10*thousand
	for round := range 5 {
		var stored atomic.Int64
		in.Store(0)
		name, let := fmt.Sprint("n", round), make(chan struct{})
		do := func(client *holdfast.Client) {
			got, err := flight.Do(t.Context(), client, name, func(context.Context) (int64, flight.State, error) {
				if at := stored.Load(); at != 0 {
					return at, flight.Fresh, nil
				}
				return 0, flight.Stale, nil
			}, func(context.Context, int64) (int64, error) {
				<-let
				stored.Store(history.Now())
				return stored.Load(), nil
			})
			if got != stored.Load() || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { do(leader) })
		harness.Eventually(t, "one leads", func() bool {
			return harness.Must(t, srv, "EXISTS", harness.KeyOf(name)) == int64(1)
		})
		for _, client := range waiters {
			all.Go(func() { do(client) })
		}
		harness.Waiting(t, srv, name, thousand)
		harness.Eventually(t, "all listen", func() bool { return harness.Listening(t, srv) >= thousand })
		before := harness.Scripts(srv)
		close(let)
		all.Wait()
		took, scripts := time.Duration(lastIn.Load()-stored.Load()), harness.Scripts(srv)-before
		t.Logf("%d are in %v after the value was stored, and have it after %v, with %d scripts", in.Load(),
			took.Round(time.Millisecond), time.Duration(history.Now()-stored.Load()).Round(time.Millisecond), scripts)
		if in.Load() != thousand {
			t.Errorf("%d are in", in.Load())
		}
		best, fewest = min(best, took), min(fewest, scripts)
	}
	// each gives back, and none asks again
	if harness.Measured() && (best > 100*time.Millisecond || fewest > thousand+thousand/10) {
		t.Errorf("the last is in after %v, and at least %d scripts ran", best, fewest)
	}
}
