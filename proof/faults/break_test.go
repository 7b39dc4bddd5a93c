package faults

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
)

// brokenTTL is that of holds that are broken.
const brokenTTL = 1500 * time.Millisecond

// brokenNames are what the processes lock: mutexes, alone and as a group, and a read-write lock.
var brokenNames = []string{"x", "y", "rw"}

// A spell is what a process tells of one lease, by the clock of the history.
type spell struct {
	ID      int // of its process
	Tokens  map[string]int64
	Reads   bool
	Got     int64  // when the call had returned
	Until   int64  // until when it was trusted, when it was last seen to be; the hold lasts no shorter
	Trusted int64  // when it was last seen to be trusted; 0: never
	Stop    int64  // when its code stopped, before the release; 0: it was not told
	By      string // who broke it; else empty

	worker int
}

// workToBeBroken is a process that locks again and again, in two goroutines, until its standard
// input ends. Its code runs on for a while after its lease was broken. It tells of each lease when
// it begins and when its code has stopped.
func workToBeBroken(c *holdfast.Client) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	out := &speller{out: json.NewEncoder(os.Stdout)}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				if lease, reads, err := lockToBeBroken(ctx, c); err == nil {
					out.work(lease, reads)
				}
			}
		})
	}
	all.Wait()
	return c.Close()
}

// lockToBeBroken takes one of the names, in one of the ways to take it.
func lockToBeBroken(ctx context.Context, c *holdfast.Client) (lease *holdfast.Lease, reads bool, err error) {
	switch rand.IntN(6) {
	case 0:
		lease, err = c.Mutex("x").Lock(ctx)
	case 1:
		lease, err = c.Mutex("x", holdfast.WithMinHold(time.Duration(1+rand.Int64N(int64(brokenTTL/4))))).Lock(ctx)
	case 2:
		lease, err = c.All([]string{"x", "y"}).Lock(ctx)
	case 3:
		lease, err = c.RWMutex("rw").Lock(ctx)
	default:
		lease, err = c.RWMutex("rw").RLock(ctx)
		reads = true
	}
	return lease, reads, err
}

// A speller tells of leases.
type speller struct {
	mu  sync.Mutex
	out *json.Encoder
	ids int
}

func (o *speller) tell(s *spell) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.ID == 0 {
		o.ids++
		s.ID = o.ids
	}
	_ = o.out.Encode(s)
}

// work holds a lease for a while, and on after it was broken.
func (o *speller) work(lease *holdfast.Lease, reads bool) {
	s := spell{Tokens: lease.Tokens(), Reads: reads, Got: history.Now()}
	see := func() bool {
		now, until := history.Now(), time.Until(lease.Until())
		if lease.Err() != nil {
			return false
		}
		s.Trusted, s.Until = now, now+int64(until)
		return true
	}
	see()
	o.tell(&s)
	for end := time.Now().Add(time.Duration(rand.Int64N(int64(brokenTTL)))); see() && time.Now().Before(end); {
		pause(2 * time.Millisecond)
	}
	var lost *holdfast.LostError
	if errors.As(lease.Err(), &lost) && lost.Reason == holdfast.LossBroken {
		s.By = lost.By
		pause(time.Duration(rand.Int64N(int64(brokenTTL / 2))))
	}
	s.Stop = history.Now()
	o.tell(&s)
	_ = lease.Release()
}

// A broken is processes that work, whose holds are broken, and what they told.
type broken struct {
	t *testing.T
	b *harness.Deployment

	mu     sync.Mutex
	spells []*spell
	all    sync.WaitGroup
}

// A brokenWorker is one of the processes, behind proxies of its own.
type brokenWorker struct {
	number  int
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	proxies []*fault.Proxy
}

// start starts a process.
func (w *broken) start(number int) *brokenWorker {
	w.t.Helper()
	to, proxies := w.b.Behind(w.t)
	child := begin(w.t, childPlan{Way: to, Prefix: w.b.Prefix, Broken: true})
	w.t.Cleanup(func() { _ = child.Process.Kill() })
	w.all.Go(func() { w.read(number, child.Lines); _ = child.Wait() })
	return &brokenWorker{number, child.Cmd, child.Stdin, proxies}
}

// read takes what a process tells.
func (w *broken) read(number int, lines *json.Decoder) {
	open := map[int]*spell{}
	for {
		s := &spell{worker: number}
		if err := lines.Decode(s); err != nil {
			return
		}
		w.mu.Lock()
		if began := open[s.ID]; began == nil {
			open[s.ID] = s
			w.spells = append(w.spells, s)
		} else {
			*began = *s
		}
		w.mu.Unlock()
	}
}

// excludes tells whether two leases exclude each other, and the name of which they do.
func (s *spell) excludes(other *spell) (name string, excludes bool) {
	for name := range s.Tokens {
		if _, ok := other.Tokens[name]; ok && !(s.Reads && other.Reads) {
			return name, true
		}
	}
	return "", false
}

// judge looks at what all told.
func (w *broken) judge() (leases, ended int) {
	w.spells = slices.DeleteFunc(w.spells, func(s *spell) bool { return s.Trusted == 0 }) // it was stopped before it knew
	slices.SortFunc(w.spells, func(a, b *spell) int { return int(a.Got - b.Got) })
	for i, s := range w.spells {
		if s.By != "" {
			ended++
		}
		for _, later := range w.spells[i+1:] {
			name, excludes := s.excludes(later)
			if !excludes {
				continue
			}
			if later.Got <= s.Trusted {
				w.t.Errorf("two leases are trusted: %+v and %+v", *s, *later)
			}
			if later.Tokens[name] <= s.Tokens[name] {
				w.t.Errorf("token %d of %s after %d", later.Tokens[name], name, s.Tokens[name])
			}
			stopped := s.Stop != 0 && s.Stop <= later.Got
			if (s.By != "" || s.Stop == 0) && !stopped && later.Got < s.Until {
				w.t.Errorf("let in before the code of the one before had stopped: %+v and %+v", *s, *later)
			}
		}
	}
	return len(w.spells), ended
}

// A breaker breaks holds, and counts.
type breaker struct {
	op              *holdfast.Client
	breaks, offered int // how many in all, and of hand-overs
}

// one breaks a hold of a name, or none.
func (k *breaker) one(ctx context.Context) {
	name := brokenNames[rand.IntN(len(brokenNames))]
	info, err := k.op.Inspect(ctx, name)
	if err != nil || len(info.Holds) == 0 {
		return
	}
	hold := info.Holds[rand.IntN(len(info.Holds))]
	offered := hold.State == lockinfo.StateHandedOver
	if !offered && (hold.State != lockinfo.StateHeld || rand.IntN(3) > 0) {
		return
	}
	if k.op.Break(ctx, name, hold.LastToken) == nil {
		k.breaks++
		if offered {
			k.offered++
		}
	}
}

// Holds of processes are broken again and again: while they live, are stopped, are cut off, are
// killed at that moment, as a hold is handed over, behind a min hold, in a group, and beside
// readers. Nobody gets in while another lease is trusted, nor before the code of a broken holder
// has stopped, unless its time is over.
func TestBrokenHolders(t *testing.T) {
	for _, topology := range []string{harness.Single, harness.Sentinel, harness.Cluster, harness.Quorum} {
		t.Run(topology, func(t *testing.T) {
			harness.Long(t)
			w := &broken{t: t, b: harness.Deploy(t, topology).Under(t, "broken")}
			w.run(time.Duration(times(t)) * 12 * time.Second)
		})
	}
}

func (w *broken) run(d time.Duration) {
	t := w.t
	var workers []*brokenWorker
	for i := range 4 {
		workers = append(workers, w.start(i))
	}
	k := &breaker{op: w.b.Client(t, holdfast.Config{Label: "op", MaxTTL: brokenTTL, TTL: brokenTTL}, nil)}
	stopBreaking := every(40*time.Millisecond, func() { k.one(t.Context()) })
	const kinds = 4
	kills, stops, cuts := 0, 0, 0
	var troubles []int
	for end := time.Now().Add(d); time.Now().Before(end); pause(100 * time.Millisecond) {
		if len(troubles) == 0 {
			troubles = rand.Perm(kinds) // all of them, whatever time it takes
		}
		i := rand.IntN(len(workers))
		one := workers[i]
		away := time.Duration(rand.Int64N(int64(3 * brokenTTL / 2)))
		switch troubles[0] {
		case 0:
			kills++
			_ = one.cmd.Process.Kill()
			workers[i] = w.start(one.number)
		case 1:
			stops++
			if err := harness.Freeze(one.cmd.Process); err != nil {
				t.Skip(err)
			}
			pause(away)
			_ = harness.Thaw(one.cmd.Process)
		case 2:
			cuts++
			for _, p := range one.proxies {
				p.Silence()
			}
			pause(away)
			for _, p := range one.proxies {
				p.Speak()
			}
		}
		troubles = troubles[1:]
	}
	stopBreaking()
	for _, one := range workers {
		_ = one.stdin.Close()
	}
	w.all.Wait()
	leases, ended := w.judge()
	t.Logf("%d leases of 4 processes, %d breaks, of them %d of hand-overs; %d leases were told that they were broken; %d processes killed, %d stopped, %d cut off",
		leases, k.breaks, k.offered, ended, kills, stops, cuts)
	if ended == 0 || kills == 0 || stops == 0 || cuts == 0 {
		t.Error("it shows nothing")
	}
	w.b.IsClean(t)
}
