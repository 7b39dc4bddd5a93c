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

// A brokenHold is a hold that an operator has broken, and the requests that may come late.
type brokenHold struct {
	*testing.T
	p     protocol.Protocol
	spec  protocol.Spec
	old   protocol.Ticket
	token int64
}

// onBothSides runs a test on the memory and on the scripts, with a hold of a spec that was broken.
func onBothSides(t *testing.T, name string, spec protocol.Spec, test func(*brokenHold)) {
	server := memory.New(protocol.Features{Queue: true, Tokens: true})
	srv := redisserver.Start(t)
	for side, p := range map[string]protocol.Protocol{"memory": server.Connect("model"),
		"scripts": scripts(t, srv.Addr(), "model", 1, nil)} {
		t.Run(side+name, func(t *testing.T) {
			k := &brokenHold{T: t, p: p, spec: spec, old: ticket()}
			k.spec.Name, k.spec.Label, k.spec.Claim, k.spec.Life = fmt.Sprintf("broken %d",
				runs.Add(1)), "holder", forever, forever
			answer, err := k.ask(k.spec, k.old, true, nil)
			if err != nil || answer.Status != protocol.Held {
				t.Fatalf("got %+v, %v", answer, err)
			}
			k.token = answer.Token
			k.breaks()
			test(k)
		})
	}
}

func ticket() protocol.Ticket { return protocol.Ticket{ID: id(runs.Add(1)), Block: 1} }

func (k *brokenHold) ask(spec protocol.Spec, ticket protocol.Ticket, join bool,
	release *protocol.Ticket) (protocol.Answer, error) {
	return k.p.Bind(spec).Ask(k.Context(), protocol.Ask{Ticket: ticket, Join: join, Release: release, TTL: forever,
		Deadline: time.Now().Add(time.Minute)})
}

func (k *brokenHold) breaks() {
	k.Helper()
	done, err := k.p.Break(k.Context(), k.spec.Name, protocol.Break{Kind: k.spec.Kind, Token: k.token, By: "op"})
	if err != nil || !done {
		k.Fatalf("Break: %v, %v", done, err)
	}
}

func (k *brokenHold) renew(ttl time.Duration) (renewed protocol.Renewed) {
	k.p.Renew(context.Background(), []protocol.Renewal{{Resource: k.p.Bind(k.spec), Ticket: k.old, Token: k.token,
		TTL: ttl}},
		func(_ int, r protocol.Renewed) { renewed = r })
	return renewed
}

func (k *brokenHold) free(ticket protocol.Ticket, keep int64) (bool, error) {
	return k.p.Bind(k.spec).Free(context.Background(), protocol.Free{Ticket: ticket, Keep: keep})
}

// broken fails unless an answer says that the hold was broken, and by whom.
func (k *brokenHold) broken(what string, err error) {
	k.Helper()
	var said *protocol.Broken
	if !errors.As(err, &said) || said.By != "op" {
		k.Errorf("%s: got %v, want that it was broken", what, err)
	}
}

// apart fails if somebody is let in, or waits: another, or the owner.
func (k *brokenHold) apart(what string) {
	k.Helper()
	for _, owner := range []string{"", k.spec.Owner} {
		spec := k.spec
		spec.Owner = owner
		if answer, err := k.ask(spec, ticket(), false, nil); err != nil || answer.Status != protocol.Busy ||
			answer.Waiters != 0 {
			k.Errorf("%s: got %+v, %v for owner %q", what, answer, err, owner)
		}
	}
}

// Every request of the holder that comes late, each of them twice, finds that its hold was broken,
// and lets nobody in. Its release alone ends the remainder of the hold.
func TestRemainderLateRequests(t *testing.T) {
	for name, spec := range map[string]protocol.Spec{
		"mutex":           {Kind: protocol.Mutex},
		"mutex of owner":  {Kind: protocol.Mutex, Owner: "me"},
		"writer":          {Kind: protocol.ReadWrite},
		"writer of owner": {Kind: protocol.ReadWrite, Owner: "me"},
		"leader":          {Kind: protocol.Election},
	} {
		onBothSides(t, "/"+name, spec, (*brokenHold).late)
	}
}

// late sends the requests.
func (k *brokenHold) late() {
	for again := range 2 {
		when := fmt.Sprintf(", sent %d times", again+1)
		for _, join := range []bool{false, true} {
			_, err := k.ask(k.spec, k.old, join, nil)
			k.broken("ask"+when, err)
		}
		k.broken("renew"+when, k.renew(forever).Err)
		k.broken("check"+when, k.renew(0).Err)
		if k.spec.Kind == protocol.ReadWrite {
			shared := k.spec
			shared.Shared = true
			_, err := k.p.Bind(shared).Downgrade(k.Context(),
				protocol.Ask{Ticket: k.old, TTL: forever, Deadline: time.Now().Add(time.Minute)})
			k.broken("downgrade"+when, err)
		}
		k.breaks()
		k.apart("after late requests" + when)
	}
	hour := time.Now().Add(forever / 2).UnixMicro()
	for again := range 2 { // with the rest of a min hold
		_, err := k.free(k.old, hour)
		k.broken(fmt.Sprintf("release with a min hold, sent %d times", again+1), err)
	}
	k.apart("while the min hold of the holder lasts")
	k.broken("renew after that", k.renew(forever).Err)
	if look, err := k.p.Bind(k.spec).Look(k.Context(), nil); err != nil || look.Holder.Label != "" ||
		look.Holders != 1 {
		k.Errorf("a remainder alone is told as %+v, %v", look, err)
	}
	_, err := k.free(k.old, 0)
	k.broken("release", err)
	if was, err := k.free(k.old, 0); was || err != nil {
		k.Errorf("release, sent twice: %v, %v", was, err)
	}
	next := ticket()
	if answer, err := k.ask(k.spec, next, false, nil); err != nil || answer.Status != protocol.Held {
		k.Errorf("got %+v, %v after all releases", answer, err)
	}
	if renewed := k.renew(forever); renewed.Held || renewed.Err != nil {
		k.Errorf("renew after all releases: %+v", renewed)
	}
	if was, err := k.free(next, 0); !was || err != nil {
		k.Errorf("release of the next: %v, %v", was, err)
	}
}

// A process that asks anew and gives its broken hold back in the same request ends the remainder.
func TestRemainderReleasedByTheNextAsk(t *testing.T) {
	onBothSides(t, "", protocol.Spec{Kind: protocol.Mutex}, func(k *brokenHold) {
		next := ticket()
		for range 2 {
			if answer, err := k.ask(k.spec, next, true, &k.old); err != nil || answer.Status != protocol.Held {
				k.Errorf("got %+v, %v", answer, err)
			}
		}
		if was, err := k.free(k.old, 0); was || err != nil {
			k.Errorf("a remainder was left: %v, %v", was, err)
		}
		if was, err := k.free(next, 0); !was || err != nil {
			k.Errorf("release: %v, %v", was, err)
		}
	})
}

// A group is refused as long as a remainder keeps one of its names, also for a request of the
// holder that comes late, and no longer.
func TestRemainderKeepsGroupsOut(t *testing.T) {
	onBothSides(t, "", protocol.Spec{Kind: protocol.Mutex}, func(k *brokenHold) {
		other := k.spec
		other.Name += ", the other of two"
		group := func(first protocol.Ticket) ([]protocol.Answer, error) {
			until := time.Now().Add(time.Minute)
			return k.p.AskAll(k.Context(), []protocol.Asking{{Resource: k.p.Bind(k.spec),
				Ask: protocol.Ask{Ticket: first, TTL: forever, Deadline: until}},
				{Resource: k.p.Bind(other), Ask: protocol.Ask{Ticket: ticket(), TTL: forever, Deadline: until}}})
		}
		for range 2 {
			for what, first := range map[string]protocol.Ticket{"the holder": k.old, "another": ticket()} {
				if answers, err := group(first); err != nil || answers[0].Status != protocol.Busy ||
					answers[0].Holders != 1 {
					k.Errorf("%s: got %+v, %v", what, answers, err)
				}
			}
		}
		_, err := k.free(k.old, time.Now().Add(50*time.Millisecond).UnixMicro())
		k.broken("release with a min hold", err)
		for deadline := time.Now().Add(time.Minute); ; {
			answers, err := group(ticket())
			if errors.Is(err, protocol.ErrApart) || err == nil && answers[0].Status == protocol.Held {
				break
			}
			if err != nil || time.Now().After(deadline) {
				k.Fatalf("after the min hold: %+v, %v", answers, err)
			}
			<-time.After(10 * time.Millisecond)
		}
	})
}
