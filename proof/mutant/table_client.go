package mutant

import "github.com/holdfast-go/holdfast/proof/history"

// clientMutants are bugs in the engine, and in what makes requests of its wishes.
func clientMutants() []Mutant {
	const engine, native_ = "internal/engine/", "internal/native/"
	return []Mutant{
		{"trust from an unknown answer", torture(history.RuleOverlap), []Patch{{engine + "watch.go",
			"\tcase r.Err != nil:\n\t\th.failure = r.Err\n", "\tcase r.Err != nil:\n\t\th.confirm(sent, ttl)\n"}}},
		{"no margin", clock("TestClockTrustEnds"), []Patch{{engine + "times.go",
			"return ttl/100 + 5*time.Millisecond", "return 0 * ttl"}}},
		{"trust from the answer on", clock("TestClockRenewalAnswerTooLate"), []Patch{{engine + "watch.go",
			"\t\th.confirm(sent, ttl)\n", "\t\th.confirm(now, ttl)\n"}}},
		{"trust of a hand-over for the whole TTL", clock("TestClockClaimTrust"), []Patch{{engine + "attempt.go",
			"return e.held(a, g.Token, g.Block, g.At, from, g.Claim)", "return e.held(a, g.Token, g.Block, g.At, from, a.lock.options.TTL)"}}},
		{"late hand-over believed", clock("TestClockLateMessage"), []Patch{{engine + "attempt.go",
			"return from, !stepped &&", "return now, true || !stepped &&"}}},
		{"any claim believed", clock("TestClockForgedGrant"), []Patch{{engine + "attempt.go",
			"forged := g.Claim > a.lock.spec.Claim", "forged := false"}}},
		{"loss not told", clock("TestClockTrustEnds"), []Patch{{engine + "hold.go",
			"if l.cancel != nil && !l.released {", "if false {"}}},
		{"watchdog outlives its release", clock("TestClockRenewalAndRelease"), []Patch{{engine + "pool.go",
			"\th.over = true\n\te.watch.remove(h)\n\te.busy.Add(1)\n", "\te.busy.Add(1)\n"}}},
		{"first failure ends renewing", clock("TestClockRenewalRecovers"), []Patch{{engine + "watch.go",
			"\t\th.renewAt = now.Add(retry(ttl))\n", ""}}},
		{"max hold not told to the server", suite("max_hold/is_not_passed_by_the_server's_expiry"), []Patch{{engine + "watch.go",
			"if o := &h.lock.options; o.MaxHold > 0 {", "if o := &h.lock.options; false {"}}},
		{"lost wake-up", clock("TestClockLateMessage"), []Patch{{engine + "engine.go",
			"\t\ta.mail.grant = &g\n\t\ta.wake()\n", "\t\ta.mail.grant = &g\n"}}},
		{"nobody asks after a gap", clock("TestClockSubscriptionGap"), []Patch{{engine + "engine.go",
			"\t\ta.mail.gap = true\n", ""}}},
		{"grant kept by one who gave up", root("TestGivenUpAtTheHandOver"), []Patch{{engine + "pool.go",
			"if err := h.lease.Release(); err != nil {", "if err := error(nil); err != nil {"}}},
		{"place kept by one who gave up", clock("TestClockGivingUpCrossesGrant"), []Patch{{engine + "attempt.go",
			"if a.inLine || !a.unsettled.IsZero() {", "if false {"}}},
		{"entry counted twice by a replay", server("TestEntryWithoutAnswer"), []Patch{{engine + "attempt.go",
			"\to := &a.lock.options\n\tsent := time.Now()\n", "\to := &a.lock.options\n\tif !a.unsettled.IsZero() {\n\t\ta.ticket.ID = ID()\n\t}\n\tsent := time.Now()\n"}}},
		{"entry never given back", suite("reentry/under_a_lease's_context"), []Patch{{engine + "hold.go",
			"if t.entries++; len(t.leases) == 0 {", "if t.entries += 1 + min(1, t.entries); len(t.leases) == 0 {"}}},
		{"passing on without end", clock("TestClockSlice"), []Patch{{engine + "pool.go",
			"if held >= slice || h.end()", "if h.end()"}}},
		{"client wall clock", native("TestNotAfter"), []Patch{{native_ + "clock.go",
			"digits16(server + local.Sub(received).Microseconds())", "digits16(local.UnixMicro())"}}},
		{"two names share a key", native("FuzzKeys"), []Patch{{native_ + "keys.go",
			`strings.NewReplacer("%", "%25", "}", "%7D")`, `strings.NewReplacer("}", "%7D")`}}},
		{"script forgotten by the server", clock("TestClockRenewalAfterScriptFlush"), []Patch{{native_ + "renew.go",
			"if isUnknownScript(replies[i].Refused) {", "if false {"}}},
		{"uncertain release not followed up", clock("TestClockUncertainRelease"), []Patch{{engine + "hold.go",
			"\t\t\te.tidy(form, request, time.Now().Add(h.lock.options.TTL), h.unsettled)\n", "\t\t\t_ = form\n"}}},
	}
}
