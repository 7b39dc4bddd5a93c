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
	case renewed:
		r.show(Event{Kind: Renewed, Worker: p.number, Until: m.Until})
	case left:
		delete(r.inside, p.number)
		r.show(Event{Kind: Left, Worker: p.number})
		if m.Lost != "" {
			r.seen.Lost++
			if i := r.incident(p); i != nil {
				i.Lost = true
			}
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
		r.show(Event{Kind: Done, Worker: p.number})
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
	r.show(Event{Kind: Holds, Worker: p.number, Token: m.Token, Until: m.Until})
	switch {
	case r.awaiting:
		r.awaiting = false
		i := &r.seen.Incidents[len(r.seen.Incidents)-1]
		i.Took = m.At.Sub(r.hit)
		r.show(Event{Kind: TookOver, Worker: p.number, Token: m.Token, Took: i.Took, Trial: i.Trial})
	case !drawn && r.hall.Without:
		r.show(Event{Kind: Entered, Worker: p.number})
	case !drawn:
		r.show(Event{Kind: Entered, Worker: p.number, Token: m.Token})
	}
	if trial := r.hall.trial(m.Round); trial != None && r.subject == nil && !drawn {
		r.try(p, trial)
		return
	}
	r.inside[p.number] = true
	p.send(order{Answer: &answer{Drawn: drawn}})
}

// try puts a holder on trial. It is not counted as inside: when its lease is over others may enter, whatever it
// believes itself.
func (r *referee) try(p *player, trial Trial) {
	r.subject, r.awaiting = p, true
	r.hit = time.Now().Round(0) // to be compared with another process's clock: the wall clock alone
	r.seen.Incidents = append(r.seen.Incidents, Incident{Trial: trial, Allowed: r.hall.allowed(trial)})
	r.impatient(len(r.seen.Incidents) - 1)
	var err error
	switch trial {
	case Kill: // as the system would, or a crash: it can do nothing about it, not even close a connection
		r.dying = p.number
		err = p.cmd.Process.Kill()
		r.show(Event{Kind: Killed, Worker: p.number, Took: r.hall.TTL})
	case Stop:
		r.stopped = p
		err = stopProcess(p.cmd.Process)
		r.show(Event{Kind: Stopped, Worker: p.number, Took: r.hall.TTL})
		p.send(order{Answer: &answer{Careless: true}}) // it reads that when it goes on
	case Overstay:
		r.show(Event{Kind: Dawdles, Worker: p.number, Took: r.hall.maxHold()})
		p.send(order{Answer: &answer{Dawdle: true}})
	}
	if err != nil {
		r.problem(p.number, err.Error())
		r.stuck()
	}
}

// impatient gives an incident up that nobody takes over from: without a server, for instance, the others would wait until
// the demo's time is over.
func (r *referee) impatient(n int) {
	time.AfterFunc(r.seen.Incidents[n].Allowed+2*time.Second, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.awaiting && len(r.seen.Incidents) == n+1 && !r.closed {
			r.problem(r.subject.number, "nobody takes over")
			r.stuck()
		}
	})
}

// incident is the trial that a worker is on, nil if it is on none.
func (r *referee) incident(p *player) *Incident {
	if r.subject != p || len(r.seen.Incidents) == 0 {
		return nil
	}
	return &r.seen.Incidents[len(r.seen.Incidents)-1]
}

func (r *referee) drew(p *player, m report) {
	a := &answer{}
	stale := r.ledger.Stale
	if err := r.ledger.Record(Draw{Round: m.Round, Worker: p.number, Ticket: m.Ticket, Token: m.Token}); err != nil {
		a.Refused = err.Error()
		kind := Refused
		if i := r.incident(p); i != nil && i.Trial == Stop && r.ledger.Stale > stale {
			r.ledger.Stale = stale // as it had to be
			i.Refused, kind = true, Late
		}
		r.show(Event{Kind: kind, Worker: p.number, Token: m.Token, Text: a.Refused})
	} else {
		r.show(Event{Kind: Drawn, Worker: p.number, Token: m.Token, Ticket: m.Ticket})
	}
	p.send(order{Answer: a})
}
