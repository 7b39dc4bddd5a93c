package model

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// A taken is a hold that another caller has taken over, and the requests that may come late.
type taken struct {
	*testing.T
	p     protocol.Protocol
	spec  protocol.Spec // of the former holder
	old   protocol.Ticket
	token int64

	to    protocol.Spec // of the caller that took over
	now   protocol.Ticket
	third protocol.Spec // of one that both exclude
}

func (k *taken) ask(spec protocol.Spec, ticket protocol.Ticket, join bool, release *protocol.Ticket) protocol.Answer {
	k.Helper()
	answer, err := k.p.Bind(spec).Ask(k.Context(), protocol.Ask{Ticket: ticket, Join: join, Release: release, TTL: forever,
		Deadline: time.Now().Add(time.Minute)})
	if err != nil {
		k.Fatal(err)
	}
	return answer
}

func (k *taken) resume(spec protocol.Spec, ticket protocol.Ticket) protocol.Answer {
	k.Helper()
	owner := k.spec.Owner
	if owner == "" {
		owner = string(k.old.ID)
	}
	answer, err := k.p.Bind(spec).Resume(k.Context(), protocol.Ask{Ticket: ticket, TTL: forever, Deadline: time.Now().Add(time.Minute)},
		owner, k.token)
	if err != nil {
		k.Fatal(err)
	}
	return answer
}

func (k *taken) renew(spec protocol.Spec, ticket protocol.Ticket, token int64, ttl time.Duration) (renewed protocol.Renewed) {
	k.p.Renew(context.Background(), []protocol.Renewal{{Resource: k.p.Bind(spec), Ticket: ticket, Token: token, TTL: ttl}},
		func(_ int, r protocol.Renewed) { renewed = r })
	return renewed
}

func (k *taken) free(spec protocol.Spec, ticket protocol.Ticket, keep int64) (bool, error) {
	return k.p.Bind(spec).Free(context.Background(), protocol.Free{Ticket: ticket, Keep: keep})
}

// replaced fails unless an answer says that the hold was taken over, and by whom.
func (k *taken) replaced(what string, err error) {
	k.Helper()
	var said *protocol.Replaced
	if !errors.As(err, &said) || said.By != k.to.Label {
		k.Errorf("%s: got %v, want that %q took it over", what, err, k.to.Label)
	}
}

// apart fails if somebody is let in, or waits.
func (k *taken) apart(what string) {
	k.Helper()
	if answer := k.ask(k.third, protocol.Ticket{ID: id(runs.Add(1)), Block: 1}, false, nil); answer.Status != protocol.Busy || answer.Waiters != 0 {
		k.Errorf("%s: got %+v for a third", what, answer)
	}
}

// held fails unless the caller that took over holds.
func (k *taken) held(what string) {
	k.Helper()
	if answer := k.ask(k.to, k.now, false, nil); answer.Status != protocol.Held {
		k.Errorf("%s: got %+v for the caller that took over", what, answer)
	}
}

// Every request of the former holder that comes late, each of them twice, finds that its hold was
// taken over, and lets nobody in. Its release alone ends the remainder of the hold.
func TestRemainderLateRequests(t *testing.T) {
	server := memory.New(protocol.Features{Queue: true, Tokens: true})
	srv := redisserver.Start(t)
	for side, p := range map[string]protocol.Protocol{"memory": server.Connect("model"), "scripts": scripts(t, srv.Addr(), "model", 1, nil)} {
		for name, spec := range map[string]protocol.Spec{
			"mutex":           {Kind: protocol.Mutex},
			"mutex of owner":  {Kind: protocol.Mutex, Owner: "me"},
			"writer":          {Kind: protocol.ReadWrite},
			"writer of owner": {Kind: protocol.ReadWrite, Owner: "me"},
			"leader":          {Kind: protocol.Election},
		} {
			t.Run(side+"/"+name, func(t *testing.T) {
				k := &taken{T: t, p: p, spec: spec}
				k.spec.Name, k.spec.Claim, k.spec.Life = fmt.Sprintf("late %d", runs.Add(1)), forever, forever
				k.spec.Label, k.to, k.third = "former", k.spec, k.spec
				k.to.Label, k.third.Owner = "present", ""
				k.old, k.now = protocol.Ticket{ID: id(runs.Add(1)), Block: 1}, protocol.Ticket{ID: id(runs.Add(1)), Block: 1}
				k.token = k.ask(k.spec, k.old, true, nil).Token
				present := k.resume(k.to, k.now)
				if present.Status != protocol.Held || present.Token <= k.token {
					t.Fatalf("got %+v after token %d", present, k.token)
				}
				k.late(present.Token)
			})
		}
	}
}

// late sends the requests.
func (k *taken) late(present int64) {
	for again := range 2 {
		when := fmt.Sprintf(", sent %d times", again+1)
		for _, join := range []bool{false, true} {
			if answer := k.ask(k.spec, k.old, join, nil); answer.Status != protocol.Busy {
				k.Errorf("ask%s: got %+v", when, answer)
			}
		}
		k.replaced("renew"+when, k.renew(k.spec, k.old, k.token, forever).Err)
		k.replaced("check"+when, k.renew(k.spec, k.old, k.token, 0).Err)
		if k.spec.Kind == protocol.ReadWrite {
			shared := k.spec
			shared.Shared = true
			_, err := k.p.Bind(shared).Downgrade(k.Context(), protocol.Ask{Ticket: k.old, TTL: forever, Deadline: time.Now().Add(time.Minute)})
			k.replaced("downgrade"+when, err)
		}
		if answer := k.resume(k.to, k.now); answer.Status != protocol.Held || answer.Token != present {
			k.Errorf("the resume%s: got %+v, want token %d", when, answer, present)
		}
		if answer := k.resume(k.to, protocol.Ticket{ID: id(runs.Add(1)), Block: 1}); answer.Status != protocol.Busy {
			k.Errorf("another resume%s: got %+v", when, answer)
		}
		k.held("after late requests" + when)
		k.apart("after late requests" + when)
	}
	hour := time.Now().Add(forever / 2).UnixMicro()
	for again := range 2 { // with the rest of a min hold
		_, err := k.free(k.spec, k.old, hour)
		k.replaced(fmt.Sprintf("release with a min hold, sent %d times", again+1), err)
		k.held("after a release with a min hold")
	}
	if was, err := k.free(k.to, k.now, 0); !was || err != nil {
		k.Errorf("release of the caller that took over: %v, %v", was, err)
	}
	k.apart("while the min hold of the former holder lasts")
	k.replaced("renew after that", k.renew(k.spec, k.old, k.token, forever).Err)
	if look, err := k.p.Bind(k.third).Look(k.Context(), nil); err != nil || look.Holder.Label != "" || look.Holders != 1 {
		k.Errorf("a remainder alone is told as %+v, %v", look, err)
	}
	_, err := k.free(k.spec, k.old, 0)
	k.replaced("release", err)
	if was, err := k.free(k.spec, k.old, 0); was || err != nil {
		k.Errorf("release, sent twice: %v, %v", was, err)
	}
	next := protocol.Ticket{ID: id(runs.Add(1)), Block: 1}
	if answer := k.ask(k.third, next, false, nil); answer.Status != protocol.Held {
		k.Errorf("got %+v after all releases", answer)
	}
	if renewed := k.renew(k.spec, k.old, k.token, forever); renewed.Held || renewed.Err != nil {
		k.Errorf("renew after all releases: %+v", renewed)
	}
	if was, err := k.free(k.third, next, 0); !was || err != nil {
		k.Errorf("release of the third: %v, %v", was, err)
	}
}

// A process that asks anew and gives its former hold back in the same request ends the remainder,
// and waits behind the caller that took over.
func TestRemainderReleasedByTheNextAsk(t *testing.T) {
	server := memory.New(protocol.Features{Queue: true, Tokens: true})
	srv := redisserver.Start(t)
	for side, p := range map[string]protocol.Protocol{"memory": server.Connect("model"), "scripts": scripts(t, srv.Addr(), "model", 1, nil)} {
		t.Run(side, func(t *testing.T) {
			spec := protocol.Spec{Name: "swap", Kind: protocol.Mutex, Label: "present", Claim: forever, Life: forever}
			k := &taken{T: t, p: p, spec: spec, to: spec, third: spec}
			k.old, k.now = protocol.Ticket{ID: id(runs.Add(1)), Block: 1}, protocol.Ticket{ID: id(runs.Add(1)), Block: 1}
			k.token = k.ask(spec, k.old, true, nil).Token
			k.resume(spec, k.now)
			next := protocol.Ticket{ID: id(runs.Add(1)), Block: 1, NoMessages: true}
			for range 2 {
				if answer := k.ask(spec, next, true, &k.old); answer.Status != protocol.Queued || answer.Holders != 1 {
					t.Errorf("got %+v", answer)
				}
			}
			if was, err := k.free(spec, k.old, 0); was || err != nil {
				t.Errorf("a remainder was left: %v, %v", was, err)
			}
			if was, err := k.free(spec, k.now, 0); !was || err != nil {
				t.Errorf("release: %v, %v", was, err)
			}
			if answer := k.ask(spec, next, true, nil); answer.Status != protocol.Held {
				t.Errorf("got %+v", answer)
			}
			_, _ = k.free(spec, next, 0)
		})
	}
}

// A group is refused as long as a remainder keeps one of its names, also for a request of the
// former holder that comes late, and no longer: not when another member of the set would have
// lasted.
func TestRemainderKeepsGroupsOut(t *testing.T) {
	server := memory.New(protocol.Features{Queue: true, Tokens: true})
	srv := redisserver.Start(t)
	for side, p := range map[string]protocol.Protocol{"memory": server.Connect("model"), "scripts": scripts(t, srv.Addr(), "model", 1, nil)} {
		t.Run(side, func(t *testing.T) {
			spec := protocol.Spec{Name: "one of two", Kind: protocol.Mutex, Label: "present", Claim: forever, Life: forever}
			other := spec
			other.Name = "the other of two"
			k := &taken{T: t, p: p, spec: spec, to: spec, third: spec}
			k.old, k.now = protocol.Ticket{ID: id(runs.Add(1)), Block: 1}, protocol.Ticket{ID: id(runs.Add(1)), Block: 1}
			group := func(ticket protocol.Ticket) []protocol.Asking {
				until := time.Now().Add(time.Minute)
				return []protocol.Asking{{Resource: p.Bind(spec), Ask: protocol.Ask{Ticket: ticket, TTL: forever, Deadline: until}},
					{Resource: p.Bind(other), Ask: protocol.Ask{Ticket: protocol.Ticket{ID: id(runs.Add(1)), Block: 1}, TTL: forever, Deadline: until}}}
			}
			refused := func(what string, ticket protocol.Ticket) {
				t.Helper()
				if answers, err := p.AskAll(t.Context(), group(ticket)); err != nil || answers[0].Status != protocol.Busy || answers[0].Holders != 1 {
					t.Errorf("%s: got %+v, %v", what, answers, err)
				}
			}
			k.token = k.ask(spec, k.old, true, nil).Token
			k.resume(spec, k.now)
			for range 2 {
				refused("the former holder", k.old)
				refused("another", protocol.Ticket{ID: id(runs.Add(1)), Block: 1})
			}
			_, _ = k.free(spec, k.now, 0)
			refused("beside the remainder", protocol.Ticket{ID: id(runs.Add(1)), Block: 1})
			_, err := k.free(spec, k.old, time.Now().Add(50*time.Millisecond).UnixMicro())
			k.replaced("release with a min hold", err)
			for deadline := time.Now().Add(time.Minute); ; {
				answers, err := p.AskAll(t.Context(), group(protocol.Ticket{ID: id(runs.Add(1)), Block: 1}))
				if errors.Is(err, protocol.ErrApart) || err == nil && answers[0].Status == protocol.Held {
					break
				}
				if err != nil || time.Now().After(deadline) {
					t.Fatalf("after the min hold: %+v, %v", answers, err)
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}
