package quorum

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// untilFree waits until no master keeps a hold. It would be there for a minute.
func untilFree(t *testing.T, servers []wire.Store, n int) {
	t.Helper()
	eventually(t, "all is given back", func() bool {
		for _, s := range servers {
			if knows(t, s, n) {
				return false
			}
		}
		return true
	})
}

// The holds of an ask that failed are given back, whenever the failure is known.
func TestAnAskThatFailsIsGivenBack(t *testing.T) {
	t.Run("another holds at a majority", func(t *testing.T) {
		servers := start(t)
		p := client(t, servers, true, id(0))
		warm(t, p)
		other := func(s wire.Store) {
			do(t, s, "HSET", "q:{%quorum}:x", string(id(9)), written("3mx", 7, 7))
		}
		other(servers[1])
		other(servers[2])
		answer, err := mutexOf(p).Ask(t.Context(), ask(1))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "ask", answer, protocol.Busy)
		untilFree(t, servers, 1)
	})
	t.Run("no majority", func(t *testing.T) {
		servers := start(t)
		all, behind := gates(servers)
		p := client(t, behind, true, id(0))
		warm(t, p)
		won := newOnce()
		close(won.goes)
		all[0].answers(func(op string) error {
			if op == "ask" {
				if !knows(t, servers[0], 1) {
					t.Error("it never won")
				}
				won.wait()
			}
			return nil
		})
		all[1].shut()
		all[2].shut()
		_, err := mutexOf(p).Ask(t.Context(), ask(1))
		var none *NoMajority
		if !errors.As(err, &none) {
			t.Fatalf("got %v", err)
		}
		<-won.came // the error may be known before
		untilFree(t, servers, 1)
	})
	t.Run("its context ends, and the answers come later", func(t *testing.T) {
		servers := start(t)
		all, behind := gates(servers)
		p := client(t, behind, true, id(0))
		r := mutexOf(p)
		warm(t, p)
		var late []*once
		for _, g := range all {
			o := newOnce()
			late = append(late, o)
			g.answers(func(op string) error {
				if op == "ask" {
					o.wait()
				}
				return nil
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := r.Ask(ctx, ask(1))
			failed <- err
		}()
		for i, o := range late {
			<-o.came
			if !knows(t, servers[i], 1) {
				t.Error("it never won")
			}
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		for _, o := range late {
			close(o.goes)
		}
		untilFree(t, servers, 1)
	})
	t.Run("an answer is lost", func(t *testing.T) {
		servers := start(t)
		all, behind := gates(servers)
		p := client(t, behind, true, id(0))
		warm(t, p)
		late := newOnce()
		close(late.goes)
		all[0].answers(func(op string) error {
			if op == "ask" {
				if !knows(t, servers[0], 1) {
					t.Error("it never won")
				}
				late.wait()
				return context.DeadlineExceeded
			}
			return nil
		})
		all[1].shut()
		all[2].shut()
		asks := ask(1)
		asks.Deadline = time.Now().Add(4 * time.Second) // what it won is given back then
		if _, err := mutexOf(p).Ask(t.Context(), asks); err == nil {
			t.Fatal("one master of three is no majority")
		}
		<-late.came // the error may be known before
		untilFree(t, servers, 1)
	})
}

// A repair takes nothing from another.
func TestARepairAsksWhoHolds(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	r := mutexOf(p)
	held := hold(t, r, servers, 1)
	do(t, servers[0], "DEL", "q:{%quorum}:x")
	do(t, servers[0], "HSET", "q:{%quorum}:x", string(id(9)), written("3mx", 7, 7))
	renew(t, p, protocol.Renewal{Resource: r, Ticket: ask(1).Ticket, Token: held.Token, TTL: time.Minute})
	if knows(t, servers[0], 1) || !knows(t, servers[0], 9) {
		t.Error("another held there")
	}
}

// The error of a renewal has each master's answer about its own name.
func TestErrorsOfARenewalNameTheLock(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	p := client(t, behind, true, id(0))
	r := mutexOf(p)
	held := hold(t, r, servers, 1)
	for _, g := range all {
		g.shut()
	}
	p.Renew(t.Context(), []protocol.Renewal{{Resource: r, Ticket: ask(1).Ticket, Token: held.Token, TTL: time.Minute}},
		func(_ int, r protocol.Renewed) {
			var none *NoMajority
			if !errors.As(r.Err, &none) || !strings.HasPrefix(r.Err.Error(), `renew "x": `) {
				t.Fatalf("got %+v", r)
			}
			for _, n := range none.Nodes {
				if !strings.HasPrefix(n.Err.Error(), `renew "x" at node `) {
					t.Errorf("got %v", n.Err)
				}
			}
		})
}

// The error tells what the one master that lives says, also where no majority can be met at all.
func TestErrorTellsOfTheMasterThatLives(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	all[1].shut()
	all[2].shut()
	var none *NoMajority
	eventually(t, "the one that lives says so", func() bool { // the error does not wait for it any longer than courtesy
		_, err := mutexOf(client(t, behind, false, id(0))).Ask(t.Context(), ask(1))
		if !errors.As(err, &none) || !errors.Is(none.Nodes[1].Err, errShut) || !errors.Is(none.Nodes[2].Err, errShut) {
			t.Fatalf("got %v", err)
		}
		return none.Nodes[0].Err == nil
	})
	if none.Nodes[0].Counts || none.Nodes[0].Why == "" {
		t.Fatalf("got %v", none)
	}
}
