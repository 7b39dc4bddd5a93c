package lottery

import (
	"fmt"
	"time"
)

// said judges a report and answers it.
func (r *referee) said(p *player, m report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m.Step {
	case ready:
		r.arrived(p.number)
	case entered:
		r.entered(p, m)
	case drew:
		r.drew(p, m)
	case left:
		delete(r.inside, p.number)
		if m.Lost != "" {
			r.seen.Lost++
			r.show(Event{Kind: Lost, Worker: p.number, Text: m.Lost})
		}
		p.send(order{Answer: &answer{}})
	case done:
		for i := len(r.turns) - 1; i >= 0; i-- {
			if t := &r.turns[i]; t.worker == p.number && t.round == m.Round {
				t.released = m.At
				break
			}
		}
		if m.Failed != "" {
			delete(r.inside, p.number)
			r.problem(p.number, m.Failed)
			r.stuck()
		}
		r.arrived(p.number)
	}
}

func (r *referee) entered(p *player, m report) {
	if len(r.inside) > 0 && !r.hall.Without {
		r.seen.Overlaps++
		r.problem(p.number, fmt.Sprintf("got the lock while %d held it", len(r.inside)))
	}
	if m.Token <= r.highest && !r.hall.Without {
		r.seen.Backwards++
		r.problem(p.number, fmt.Sprintf("token %d came after %d", m.Token, r.highest))
	}
	r.highest = max(r.highest, m.Token)
	r.turns = append(r.turns, turn{round: m.Round, worker: p.number, since: m.Since, at: m.At})
	drawn := r.ledger.Drawn(m.Round)
	switch {
	case r.awaiting:
		r.awaiting = false
		r.seen.TakeOver = m.At.Sub(r.killed)
		r.show(Event{Kind: TookOver, Worker: p.number, Token: m.Token, Took: r.seen.TakeOver})
	case !drawn && r.hall.Without:
		r.show(Event{Kind: Entered, Worker: p.number})
	case !drawn:
		r.show(Event{Kind: Entered, Worker: p.number, Token: m.Token})
	}
	if m.Round == r.hall.fatal() && r.victim == 0 {
		r.kill(p) // it waits for the answer, which never comes
		return
	}
	r.inside[p.number] = true
	p.send(order{Answer: &answer{Drawn: drawn}})
}

// kill ends a holder as the system would, or a crash: it can do nothing about it, not even close a connection.
func (r *referee) kill(p *player) {
	r.killed = time.Now().Round(0) // to be compared with another process's clock: the wall clock alone
	if err := p.cmd.Process.Kill(); err != nil {
		r.problem(p.number, "kill: "+err.Error())
	}
	r.victim, r.awaiting = p.number, true
	r.show(Event{Kind: Killed, Worker: p.number, Took: r.hall.TTL})
}

func (r *referee) drew(p *player, m report) {
	a := &answer{}
	if err := r.ledger.Record(Draw{Round: m.Round, Worker: p.number, Ticket: m.Ticket, Token: m.Token}); err != nil {
		a.Refused = err.Error()
		r.show(Event{Kind: Refused, Worker: p.number, Token: m.Token, Text: a.Refused})
	} else {
		r.show(Event{Kind: Drawn, Worker: p.number, Token: m.Token, Ticket: m.Ticket})
	}
	p.send(order{Answer: a})
}
