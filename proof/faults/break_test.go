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
	"github.com/holdfast-go/holdfast/proof/history"
)

// brokenTTL is that of holds that are broken.
const brokenTTL = 1500 * time.Millisecond

// A spell is what a process tells of one lease, by the clock of the history.
type spell struct {
	Token   int64
	Got     int64  // when the call had returned
	Until   int64  // until when it was trusted, when it was last seen to be; the hold lasts no shorter
	Trusted int64  // when it was last seen to be trusted
	Stop    int64  // when its code stopped, before the release; 0: it was not told
	By      string // who broke it; else empty

	worker int
}

// workToBeBroken is a process that locks one name again and again until its standard input ends.
// Its code runs on for a while after its lease was broken. It tells of each lease when it begins
// and when its code has stopped.
func workToBeBroken(c *holdfast.Client, name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	out := json.NewEncoder(os.Stdout)
	for ctx.Err() == nil {
		lease, err := c.Mutex(name).Lock(ctx)
		if err != nil {
			continue
		}
		s := spell{Token: lease.Token(), Got: history.Now()}
		see := func() bool {
			now, until := history.Now(), time.Until(lease.Until())
			if lease.Err() != nil {
				return false
			}
			s.Trusted, s.Until = now, now+int64(until)
			return true
		}
		see()
		_ = out.Encode(s)
		for end := time.Now().Add(time.Duration(rand.Int64N(int64(brokenTTL)))); see() && time.Now().Before(end); {
			pause(2 * time.Millisecond)
		}
		var lost *holdfast.LostError
		if errors.As(lease.Err(), &lost) && lost.Reason == holdfast.LossBroken {
			s.By = lost.By
			pause(time.Duration(rand.Int64N(int64(brokenTTL / 2))))
		}
		s.Stop = history.Now()
		_ = out.Encode(s)
		_ = lease.Release(context.Background())
	}
	return c.Close()
}

// A broken is processes that work, whose holds are broken, and what they told.
type broken struct {
	t *testing.T
	b *bed

	mu     sync.Mutex
	spells []*spell
	all    sync.WaitGroup
}

// A brokenWorker is one of the processes, behind a proxy of its own.
type brokenWorker struct {
	number int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	proxy  *fault.Proxy
}

// start starts a process.
func (w *broken) start(number int) *brokenWorker {
	w.t.Helper()
	p := fault.Start(w.t, w.b.Addrs[0])
	to := way{Topology: single, Addrs: []string{p.Addr()}}
	child := begin(w.t, childPlan{Way: to, Prefix: w.b.prefix, Broken: "x"})
	w.t.Cleanup(func() { _ = child.Process.Kill() })
	w.all.Go(func() { w.read(number, child.lines); _ = child.Wait() })
	return &brokenWorker{number, child.Cmd, child.stdin, p}
}

// read takes what a process tells.
func (w *broken) read(number int, lines *json.Decoder) {
	var open *spell
	for {
		s := &spell{worker: number}
		if err := lines.Decode(s); err != nil {
			return
		}
		w.mu.Lock()
		if s.Stop == 0 {
			open = s
			w.spells = append(w.spells, s)
		} else if open != nil {
			*open = *s
			open.worker = number
		}
		w.mu.Unlock()
	}
}

// judge looks at what all told.
func (w *broken) judge() (leases, ended int) {
	slices.SortFunc(w.spells, func(a, b *spell) int { return int(a.Got - b.Got) })
	for i, s := range w.spells {
		if s.By != "" {
			ended++
		}
		for _, later := range w.spells[i+1:] {
			if later.Got <= s.Trusted {
				w.t.Errorf("two leases are trusted: %+v and %+v", *s, *later)
			}
			if later.Token <= s.Token {
				w.t.Errorf("token %d after %d", later.Token, s.Token)
			}
			stopped := s.Stop != 0 && s.Stop <= later.Got
			if (s.By != "" || s.Stop == 0) && !stopped && later.Got < s.Until {
				w.t.Errorf("let in before the code of the one before had stopped: %+v and %+v", *s, *later)
			}
		}
	}
	return len(w.spells), ended
}

// Holds of processes are broken again and again: while they live, are stopped, are cut off, are
// killed at that moment, and as a hold is handed over. Nobody gets in while another lease is
// trusted, nor before the code of a broken holder has stopped, unless its time is over.
func TestBrokenHolders(t *testing.T) {
	long(t)
	b := lay(t, single).under(t, "broken")
	w := &broken{t: t, b: b}
	var workers []*brokenWorker
	for i := range 4 {
		workers = append(workers, w.start(i))
	}
	op := b.client(t, holdfast.Config{Label: "op"}, nil)
	breaks, offered, kills, stops, cuts := 0, 0, 0, 0, 0
	stopBreaking := every(40*time.Millisecond, func() {
		info, err := op.Inspect(t.Context(), "x")
		if err != nil || len(info.Holds) == 0 {
			return
		}
		hold := info.Holds[0]
		if hold.State != holdfast.HoldHandedOver && (hold.State != holdfast.HoldHeld || rand.IntN(3) > 0) {
			return
		}
		if op.Break(t.Context(), "x", hold.LastToken) == nil {
			breaks++
			if hold.State == holdfast.HoldHandedOver {
				offered++
			}
		}
	})
	for end := time.Now().Add(time.Duration(times(t)) * 20 * time.Second); time.Now().Before(end); pause(100 * time.Millisecond) {
		i := rand.IntN(len(workers))
		one := workers[i]
		away := time.Duration(rand.Int64N(int64(3 * brokenTTL / 2)))
		switch rand.IntN(6) {
		case 0, 1:
			kills++
			_ = one.cmd.Process.Kill()
			workers[i] = w.start(one.number)
		case 2:
			stops++
			if err := freeze(one.cmd.Process); err != nil {
				t.Skip(err)
			}
			pause(away)
			_ = thaw(one.cmd.Process)
		case 3:
			cuts++
			one.proxy.Silence()
			pause(away)
			one.proxy.Speak()
		}
	}
	stopBreaking()
	for _, one := range workers {
		_ = one.stdin.Close()
	}
	w.all.Wait()
	leases, ended := w.judge()
	t.Logf("%d leases of 4 processes, %d breaks, of them %d of hand-overs; %d leases were told that they were broken; %d processes killed, %d stopped, %d cut off",
		leases, breaks, offered, ended, kills, stops, cuts)
	if ended == 0 || kills == 0 || stops == 0 || cuts == 0 {
		t.Error("it shows nothing")
	}
	b.clean(t)
}
