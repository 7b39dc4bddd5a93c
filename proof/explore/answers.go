package explore

// read takes the answer to a request.
func (x *search) read(t *state, who int8) {
	a, c := &t.attempts[who], &x.Callers[who]
	r := a.out
	a.out = Request{}
	switch r.op {
	case opAsk:
		x.readAsk(t, a, c, &r)
	case opAskAll:
		other := &t.attempts[who+1]
		if r.answer == held {
			for _, part := range []*attempt{a, other} {
				x.become(t, part, c, &r)
			}
		}
	case opFree:
		if a.old = -1; r.sent > a.until {
			*a = attempt{old: -1, grant: -1}
		}
	case opRenew:
		x.readRenewal(t, a, &r)
	case opDowngrade:
		switch r.answer {
		case held:
			a.mode = shares
			if a.phase == holding {
				a.trust = max(a.trust, r.sent+x.TTL)
			}
		case broken:
			a.phase = lost
		default:
			a.phase, a.trust = lost, min(a.trust, t.now)
		}
	case opLatch:
		a.phase = over
	}
}

func (x *search) readAsk(t *state, a *attempt, c *Caller, r *Request) {
	a.old = -1
	switch r.answer {
	case held:
		x.become(t, a, c, r)
		if a.listens {
			a.listens = false
			t.server = x.listen(t.server, r.Who, r.number, false)
		}
	case queued:
		a.phase, a.inLine = waiting, true
		if c.Keep > 0 && (!r.inLine || r.leaving) {
			a.phase = placed
			if a.listens {
				a.listens = false
				t.server = x.listen(t.server, r.Who, r.number, false)
			}
		}
	case busy:
		if c.Tries || c.Keep > 0 {
			x.end(t, a, r)
		}
	case broken, evicted, refused:
		x.end(t, a, r)
	}
}

// end ends an attempt that has nothing, unless an ask without an answer may still take effect.
func (x *search) end(t *state, a *attempt, r *Request) {
	if a.listens {
		t.server = x.listen(t.server, r.Who, r.number, false)
	}
	if r.answer == broken || a.until >= t.now {
		a.phase, a.listens = leaving, false
		return
	}
	*a = attempt{old: -1, grant: -1}
}

// become makes a holder of a caller, if the answer is not too old for that.
func (x *search) become(t *state, a *attempt, c *Caller, r *Request) {
	end := x.trustEnd(r, t.now)
	if end <= t.now {
		a.phase = waiting
		return
	}
	if c.Min > 0 {
		a.granted = r.server
		t.reserved, t.reserver = r.server+c.Min, r.Who
	}
	a.phase, a.trust, a.inLine = holding, end, false
}

// trustEnd is the end of trust after the answer to a request.
func (x *search) trustEnd(r *Request, _ int64) int64 { return r.sent + x.TTL }

// readRenewal takes the answer to a renewal, or to that of a hold that was attached.
func (x *search) readRenewal(t *state, a *attempt, r *Request) {
	end := x.trustEnd(r, t.now)
	switch r.answer {
	case held:
		if a.phase == holding || a.phase == detached && end > t.now {
			a.phase = holding
		}
		if a.phase == holding || a.phase == unused {
			a.trust = max(a.trust, end)
		}
	case broken:
		if a.phase == detached || a.phase == unused {
			a.phase = leaving
		} else {
			a.phase = lost // the code runs on until the release
		}
	default:
		if a.phase == unused {
			a.phase = leaving
		} else {
			a.phase, a.trust = lost, min(a.trust, t.now)
		}
	}
}
