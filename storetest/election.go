package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func election() []test {
	return []test{
		{"goroutines of one process", electionGoroutines, queue},
		{"who leads", electionLeader, 0},
		{"run campaigns again after a loss", electionRunLost, 0},
		{"observe every leader", electionObserve, 0},
		{"check", electionCheck, 0},
	}
}

func (e *env) leader(c *holdfast.Election) (leader holdfast.Leader, err error) {
	err = e.askUntilAnswered(func() error { leader, err = c.Leader(e.ctx()); return err })
	return leader, err
}

// leaderError returns the error of a look at an election without a leader.
func (e *env) leaderError(c *holdfast.Election) error {
	_, err := e.leader(c)
	return err
}

// Leadership does not pass inside a process: the server always names the present leader.
func electionGoroutines(e *env) {
	c := e.client()
	lease := e.take(c.Election(name).Campaign)
	for range 3 {
		w := e.startWaiting(e.ctx(), c, c.Election(name).Campaign)
		e.release(lease)
		lease = w.await()
		leader, err := e.leader(c.Election(name))
		e.must(err)
		if leader.Token != lease.Token() || leader.Owner != lease.Owner() {
			e.Errorf("%+v leads, but the lease is %q, %d", leader, lease.Owner(), lease.Token())
		}
	}
	e.release(lease)
}

func electionLeader(e *env) {
	a, b := e.client(label("A")), e.client()
	var last holdfast.Leader
	for _, want := range []string{"A", "mine"} {
		var option holdfast.Option
		if want == "mine" {
			option = holdfast.WithLabel(want)
		}
		e.checkIs(e.leaderError(b.Election(name)), holdfast.ErrNoLeader)
		lease := e.take(a.Election(name, option).Campaign)
		leader, err := e.leader(b.Election(name))
		e.must(err)
		checkEqual(e, "label", leader.Label, want)
		checkEqual(e, "owner", leader.Owner, lease.Owner())
		checkEqual(e, "token", leader.Token, lease.Token())
		if leader.Since.IsZero() || leader.Since.Before(last.Since) {
			e.Errorf("leads since %v, after one since %v", leader.Since, last.Since)
		}
		last = leader
		e.release(lease)
	}
	e.checkIs(e.leaderError(b.Election(name)), holdfast.ErrNoLeader)
}

func electionRunLost(e *env) {
	c := e.client()
	ctx, cancel := context.WithCancel(e.ctx())
	defer cancel()
	terms := 0
	own := errors.New("own")
	m := c.Election(name, holdfast.WithMaxHold(ttl))
	err := m.Run(ctx, func(ctx context.Context) error {
		if terms++; terms < 4 {
			// at the end of its max hold, or before, if a hand-over is not confirmed in time
			e.checkIs(e.awaitEnd(ctx), holdfast.ErrLost)
			if err := m.Check(); !errors.Is(err, holdfast.ErrLost) {
				e.Errorf("Check of a leader that goes on after its loss: %v", err)
			}
			return []error{nil, ctx.Err(), context.Cause(ctx)}[terms-1]
		}
		e.awaitEnd(ctx)
		return own
	})
	e.checkIs(err, own, holdfast.ErrLost)
	e.must(m.Check())
}

// observe collects leaders until ctx ends. A zero Leader says that nobody leads.
func (e *env) observe(ctx context.Context, c *client) (<-chan holdfast.Leader, *waiter) {
	leaders := make(chan holdfast.Leader, 100)
	return leaders, e.goCall(func() error {
		known := holdfast.Leader{}
		for leader, err := range c.Election(name).Observe(ctx) {
			switch nobody := errors.Is(err, holdfast.ErrNoLeader); {
			case err != nil && !nobody:
				return err
			case nobody != (leader == holdfast.Leader{}) || leader == known:
				return fmt.Errorf("told %+v, %w after %+v", leader, err, known)
			}
			known = leader
			leaders <- leader
		}
		return errors.New("it ended without an error")
	})
}

// awaitLeader returns the next leader that is told, or that nobody leads any more.
func (e *env) awaitLeader(leaders <-chan holdfast.Leader, nobody bool) holdfast.Leader {
	e.Helper()
	for end := time.After(patience); ; {
		select {
		case leader := <-leaders:
			if nobody == (leader == holdfast.Leader{}) {
				return leader
			}
		case <-end:
			e.Fatal("no leader is told, or not that nobody leads")
		}
	}
}

func electionObserve(e *env) {
	a, b, c := e.client(label("A")), e.client(label("B")), e.client()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lease := e.take(a.Election(name).Campaign)
	leaders, done := e.observe(ctx, c)
	for i := range 6 {
		if leader := e.awaitLeader(leaders, false); leader.Owner != lease.Owner() || leader.Token != lease.Token() ||
			leader.Label != []string{"A", "B"}[i%2] {
			e.Fatalf("got %+v, want %q with %d", leader, lease.Owner(), lease.Token())
		}
		e.release(lease)
		lease = e.take([]*client{b, a}[i%2].Election(name).Campaign)
	}
	e.awaitLeader(leaders, false)
	e.release(lease)
	e.awaitLeader(leaders, true)
	cancel()
	e.checkIs(done.awaitError(), context.Canceled)
	if n := len(leaders); n > 0 {
		e.Errorf("%d leaders were told twice", n)
	}
}

func electionCheck(e *env) {
	a, b := e.client(), e.client()
	m := a.Election(name)
	e.must(m.Check())
	lease := e.take(m.Campaign)
	other := e.take(b.Election("other").Campaign)
	e.must(m.Check())
	e.must(b.Election(name).Check()) // this client does not lead
	e.release(lease)
	e.release(other)
	e.must(m.Check())
	lease = e.take(a.Election(name, holdfast.WithMaxHold(ttl)).Campaign)
	e.awaitEnd(leased.Context(lease))
	e.must(m.Check()) // this client leads no more, and no fn of it runs
	e.checkLost(lease.Release(), holdfast.LossMaxHold)
}
