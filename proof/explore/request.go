package explore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An op is what a request does.
type op byte

const (
	noOp op = iota
	opAsk
	opAskAll
	opFree
	opRenew
	opDowngrade
	opLatch
	opBreak
	opEvict
	opResize
)

// An answer is what came of a request.
type answer byte

const (
	tooLate answer = iota
	held
	queued
	busy
	given   // by a free: there was something
	nothing // by a free: there was nothing
	broken
	evicted
	refused
	done
)

var answerTexts = [...]string{"too late", "held", "queued", "busy", "given back", "nothing to give back", "broken",
	"evicted", "refused", "done"}

// A Request is one request of a story.
type Request struct {
	At  int64 // the tick at which it reaches the server
	Who int8

	node     int8 // of a quorum
	op       op
	number   int8 // of the ticket
	old      int8 // of the ticket that it gives back as well; -1: none
	join     bool
	inLine   bool
	leaving  bool
	shared   bool // the mode of the hold
	both     bool // a free of both modes
	answered bool
	answer   answer
	sent     int64
	server   int64 // the tick of the answer
	keep     int64 // until when a min hold lasts
	permits  int64
}

var opTexts = [...]string{"", "ask", "ask for all", "free", "renew", "downgrade", "latch", "break", "evict", "resize"}

func (r *Request) String() string {
	text := fmt.Sprintf("%s, ticket %d.%d", opTexts[r.op], r.Who, r.number)
	if r.old >= 0 {
		text += fmt.Sprintf(", gives %d.%d back", r.Who, r.old)
	}
	for _, flag := range []struct {
		set  bool
		text string
	}{{r.join, "join"}, {r.inLine, "in line"}, {r.leaving, "leaving"}, {r.shared, "shared"}, {r.both, "both modes"}} {
		if flag.set {
			text += ", " + flag.text
		}
	}
	if r.keep > 0 {
		text += fmt.Sprintf(", kept until %d", r.keep)
	}
	return text
}

// Answer is what came of the request, in words.
func (r *Request) Answer() string { return answerTexts[r.answer] }

// Replay sends the request of a story to a server whose clock showed begin at the first tick, and
// returns the answer in words. The clock shows the tick At, or not half a tick more.
func (w *World) Replay(c protocol.Protocol, r *Request, begin time.Time) string {
	came, _ := w.send(c, r, begin)
	return answerTexts[came]
}

func (w *World) send(c protocol.Protocol, r *Request, begin time.Time) (came answer, server int64) {
	ctx, caller := context.Background(), &w.Callers[r.Who]
	resource := c.Bind(w.spec(caller, r.shared, r.permits))
	ticket, deadline := w.ticket(r.Who, r.number), begin.Add(ticks(r.sent+patience)+tick/2)
	ask := protocol.Ask{Ticket: ticket, Join: r.join, InLine: r.inLine, Leaving: r.leaving,
		TTL: ticks(max(w.TTL, caller.Min)), Deadline: deadline}
	if r.old >= 0 {
		old := w.ticket(r.Who, r.old)
		ask.Release = &old
	}
	keep := int64(0)
	if r.keep > 0 {
		keep = begin.UnixMicro() + micros(r.keep)
	}
	at := func(micros int64) int64 { return (micros - begin.UnixMicro()) / tick.Microseconds() }
	switch r.op {
	case opAsk:
		got, err := resource.Ask(ctx, ask)
		return result(got.Status, err), at(got.Server)
	case opAskAll:
		second := ask
		second.Ticket = w.ticket(r.Who+1, r.number)
		all := []protocol.ResourceAsk{{Resource: resource, Ask: ask},
			{Resource: c.Bind(w.spec(&w.Callers[r.Who+1], false, 0)), Ask: second}}
		got, err := c.AskAll(ctx, all)
		if err != nil {
			return result(0, err), 0
		}
		return result(max(got[0].Status, got[1].Status), nil), at(got[0].Server)
	case opDowngrade:
		got, err := resource.Downgrade(ctx, ask)
		return result(got.Status, err), at(got.Server)
	case opFree:
		return w.free(c, r, keep), 0
	case opRenew:
		token, _ := tokenOf(c, caller.Name, ticket.ID) // of the grant, which the caller knows
		renewal := protocol.Renewal{Resource: resource, Ticket: ticket, Token: token, TTL: ticks(w.TTL), Floor: keep}
		c.Renew(ctx, []protocol.Renewal{renewal}, func(_ int, got protocol.RenewalAnswer) {
			came = nothing
			if got.Held || got.Err != nil {
				came = result(protocol.Held, got.Err)
			}
		})
		return came, 0
	case opLatch:
		return w.latch(c, r, deadline), 0
	}
	return w.operate(c, r, deadline), 0
}

// free gives tickets back, in the modes that they may be held in.
func (w *World) free(c protocol.Protocol, r *Request, keep int64) answer {
	came := nothing
	for _, number := range []int8{r.number, r.old} {
		for _, shared := range []bool{r.shared, !r.shared} {
			if number < 0 || shared != r.shared && !r.both {
				continue
			}
			was, err := c.Bind(w.spec(&w.Callers[r.Who], shared, r.permits)).Free(context.Background(),
				protocol.FreeRequest{Ticket: w.ticket(r.Who, number), Keep: keep})
			if was {
				came = given
			} else if err != nil {
				came = result(0, err)
			}
		}
	}
	return came
}

func (w *World) latch(c protocol.Protocol, r *Request, deadline time.Time) answer {
	caller, id := &w.Callers[r.Who], ids[r.Who][r.number]
	latch := c.BindLatch(protocol.Spec{Name: caller.Name, Life: ticks(w.Life)})
	var err error
	if caller.Counts {
		_, err = latch.CountDown(context.Background(), id, deadline, deadline.Add(ticks(patience)))
	} else {
		_, _, err = latch.Set(context.Background(), id, countDowns, ticks(w.TTL), deadline)
	}
	if err != nil {
		return result(0, err)
	}
	return done
}

// operate does what an operator does: it looks, and acts.
func (w *World) operate(c protocol.Protocol, r *Request, deadline time.Time) answer {
	ctx, caller, id := context.Background(), &w.Callers[r.Who], ids[r.Who][r.number]
	var ok bool
	var err error
	switch r.op {
	case opResize:
		ok, err = true, c.Bind(w.spec(caller, true, r.permits)).Resize(ctx, r.permits, deadline)
	case opEvict:
		ok, err = c.Evict(ctx, caller.Name, caller.Kind, id, "op")
	case opBreak:
		if token, held := tokenOf(c, caller.Name, id); held {
			ok, err = c.Break(ctx, caller.Name, protocol.Break{Kind: caller.Kind, Token: token, By: "op"})
		}
	}
	if err != nil {
		return result(0, err)
	}
	if !ok {
		return nothing
	}
	return done
}

func tokenOf(c protocol.Protocol, name string, id protocol.ID) (int64, bool) {
	in, _ := c.Inspect(context.Background(), name, protocol.Page{Holds: most})
	for _, h := range in.Holds {
		if h.ID == id {
			return h.Token, true
		}
	}
	return 0, false
}

func result(status protocol.Status, err error) answer {
	var was *protocol.Broken
	var out *protocol.Evicted
	var failure *protocol.Failure
	switch {
	case errors.As(err, &was):
		return broken
	case errors.As(err, &out):
		return evicted
	case errors.As(err, &failure):
		return tooLate
	case err != nil:
		return refused
	}
	return answer(status)
}
