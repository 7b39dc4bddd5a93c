package mutant

// quorumMutants returns bugs of locks on independent masters.
func quorumMutants() []Mutant {
	inside := func(name string) Check { return Check{Module: ".", Package: "./internal/quorum", Test: name} }
	quorum := func(name string) Check { return Check{Module: "proof", Package: "./quorum", Test: name} }
	return []Mutant{
		{
			Name:   "quorum: no validity check",
			Caught: quorum("TestValidity"),
			Patches: []Patch{{
				File: "internal/engine/hold.go",
				Old:  "\th.trustEnd = sent.Add(ttl - margin(ttl))\n",
				New:  "\th.trustEnd = time.Now().Add(ttl - margin(ttl))\n",
			}},
		},
		{
			Name:   "quorum: birth mark ignored",
			Caught: quorum("TestForgotten"),
			Patches: []Patch{{
				File: "internal/quorum/node.go",
				Old:  "\treturn (f.counts || p.config.Trust) && !f.ahead && f.same == nil\n",
				New:  "\treturn !f.ahead && f.same == nil\n",
			}},
		},
		{
			Name:   "quorum: a clock set forward is not seen",
			Caught: quorum("TestClockSetForward"),
			Patches: []Patch{{
				File: "internal/quorum/clock.go",
				Old:  "\t\tif now > late+leap.Microseconds() {\n\t\t\treturn micros(now - late)\n\t\t}\n",
				New:  "",
			}},
		},
		{
			Name:   "quorum: time not padded",
			Caught: clock("TestQuorumClocksShowAnyTime/1970"),
			Patches: []Patch{{
				File: "internal/quorum/lua/state.lua",
				Old:  "local now = string.sub(NONE .. time[1] .. string.sub('00000' .. time[2], -6), -16)\n",
				New:  "local now = time[1] .. string.sub('00000' .. time[2], -6)\n",
			}},
		},
		{
			Name:   "quorum: all nodes are blamed for our own clock",
			Caught: inside("TestAllNodesAheadBlameThisMachine"),
			Patches: []Patch{{
				File: "internal/quorum/clockcheck.go",
				Old:  "\t\treturn wrongOurs\n",
				New:  "\t\treturn wrongTheirs\n",
			}},
		},
		{
			Name:   "quorum: two steps of different size pass for a stop of our own clock",
			Caught: inside("TestTwoNodesAheadByDifferentTimesDoNotCount"),
			Patches: []Patch{{
				File: "internal/quorum/clockcheck.go",
				Old:  "\t\t\tahead = mostByOneStop(leads)\n",
				New:  "\t\t\tahead = len(leads)\n",
			}},
		},
		{
			Name:   "quorum: token not agreed on",
			Caught: quorum("TestTokens"),
			Patches: []Patch{{
				File: "internal/quorum/round.go",
				Old:  "\tcase t.votes(\"H\") >= need:\n",
				New:  "\tcase won >= need:\n",
			}, {
				File: "internal/quorum/round.go",
				Old:  "\tcase won >= need:\n\t\tt.verdict = tokenRefused\n",
				New:  "",
			}},
		},
		{
			Name:   "quorum: who does not answer is taken for one that forgot",
			Caught: inside("TestAdoptWithSilentMasterWaits"),
			Patches: []Patch{{
				File: "internal/quorum/adopt.go",
				Old:  "\tcase len(forgot) > p.spare(), p.config.Trust && answered >= p.need:\n",
				New:  "\tcase answered >= p.need:\n",
			}},
		},
		{
			Name:   "quorum: the longest TTL is not told with the hold",
			Caught: inside("TestAskTellsLongestTTL"),
			Patches: []Patch{{
				File: "internal/quorum/round.go",
				Old:  "r.life, r.p.config.MaxTTL.Milliseconds()}\n",
				New:  "r.life, 0}\n",
			}},
		},
		{
			Name:   "quorum: another prefix has seen the restart",
			Caught: inside("TestRestartIsSeenByEachPrefix"),
			Patches: []Patch{{
				File: "internal/quorum/scripts.go",
				Old:  "\treturn \"-- \" + strconv.QuoteToASCII(prefix) +",
				New:  "\treturn \"-- \" + strconv.QuoteToASCII(usual) +",
			}},
		},
		{
			Name:   "quorum: what a failed ask won is not given back",
			Caught: inside("TestAskThatFailsIsGivenBack/no_majority"),
			Patches: []Patch{{
				File: "internal/quorum/round.go",
				Old:  "\tcase a.holds():\n\t\ta.node.addCleanup(c)\n",
				New:  "",
			}},
		},
		{
			Name:   "quorum: late answers are not looked after",
			Caught: inside("TestAskThatFailsIsGivenBack/its_context_ends,_and_the_answers_come_later"),
			Patches: []Patch{{
				File: "internal/quorum/round.go",
				Old:  "collectRest(func(a *reply) { t.cleanUpAfter(a, number, outcome.held) })\n",
				New:  "collectRest(func(*reply) {})\n",
			}},
		},
		{
			Name:   "quorum: an answer that was lost is not looked after",
			Caught: inside("TestAskThatFailsIsGivenBack/an_answer_is_lost"),
			Patches: []Patch{{
				File: "internal/quorum/round.go",
				Old:  "\t\tc.notBefore = t.ask.Deadline.Add(time.Millisecond)\n\t\ta.node.addCleanup(c)\n",
				New:  "",
			}},
		},
		{
			Name:   "quorum: no repair",
			Caught: inside("TestRenewalRepairs/the_hold"),
			Patches: []Patch{{
				File: "internal/quorum/renew.go",
				Old:  "\t\tt.repair(&repairs)\n",
				New:  "",
			}},
		},
		{
			Name:   "quorum: a repair does not ask who holds",
			Caught: inside("TestRepairBesideAnotherHoldSetsNothing"),
			Patches: []Patch{{
				File: "internal/quorum/lua/ask.lua",
				Old:  "if other or kept or held_off then\n",
				New:  "if ARGV[7] ~= 'r' and (other or kept or held_off) then\n",
			}},
		},
		{
			Name:   "quorum: a repair sets again what was given back",
			Caught: inside("TestRepairAfterGiveBackSetsNothing"),
			Patches: []Patch{{
				File: "internal/quorum/wait.go",
				Old:  "\tif m := p.repairs[id]; m == nil || m.freed {\n",
				New:  "\tif m := p.repairs[id]; m == nil {\n",
			}},
		},
		{
			Name:   "quorum: a late give-back takes what was renewed since",
			Caught: inside("TestLateGiveBackLeavesConfirmedHold/renewed"),
			Patches: []Patch{{
				File: "internal/quorum/lua/renew.lua",
				Old:  "string.sub(value, 17, 48) .. AGREED .. string.sub(value, 65))\n",
				New:  "string.sub(value, 17))\n",
			}},
		},
		{
			Name:   "quorum: a break ends what it leaves before the end of the hold",
			Caught: inside("TestBreakIsDoneByMajority"),
			Patches: []Patch{{
				File: "internal/quorum/lua/break.lua",
				Old:  "broken(value, ARGV[4], ARGV[3]))\n",
				New:  "broken(string.sub(value, 1, 3) .. string.format('%013.0f', ms + 1000) .. string.sub(value, 17), ARGV[4], ARGV[3]))\n",
			}},
		},
		{
			Name:   "quorum: no majority is told as busy",
			Caught: quorum("TestMajorityGone"),
			Patches: []Patch{{
				File: "internal/quorum/round.go",
				Old:  "\tcase answered+pending < need:\n\t\tt.verdict = failed\n",
				New:  "\tcase answered+pending < need:\n\t\tt.verdict = busy\n",
			}},
		},
		{
			Name:   "quorum: busy is told as no majority",
			Caught: quorum("TestBusyIsNotGone"),
			Patches: []Patch{{
				File: "internal/quorum/round.go",
				Old:  "\tcase holders+given >= need:\n\t\tt.verdict = busy\n",
				New:  "\tcase holders+given >= need:\n\t\tt.verdict = failed\n",
			}},
		},
		{
			Name:   "quorum: an ask overtakes the release before it",
			Caught: inside("TestAskFollowsRelease"),
			Patches: []Patch{{
				File: "internal/quorum/round.go",
				Old:  "\t\tbefore := n.releasesBefore(t.r.spec.Name)\n",
				New:  "\t\tvar before <-chan struct{}\n",
			}},
		},
		{
			Name:   "quorum: a release overtakes the ask before it",
			Caught: inside("TestReleaseFollowsAsk"),
			Patches: []Patch{{
				File: "internal/quorum/pending.go",
				Old:  "\tif f == nil {\n\t\tn.mu.Unlock()\n\t\treturn true\n\t}\n",
				New:  "\tif true {\n\t\tn.mu.Unlock()\n\t\treturn true\n\t}\n",
			}},
		},
		{
			Name:   "quorum: a caller enters beside a remainder",
			Caught: inside("TestRemainderExcludesAsHold"),
			Patches: []Patch{{
				File: "internal/quorum/lua/ask.lua",
				Old:  "    kept, soft, barred = true,",
				New:  "    kept, soft, barred = false,",
			}},
		},
		{
			Name:   "quorum: an owner enters what remains of its own hold",
			Caught: inside("TestRemainderExcludesAsHold/an_owner,_where_it_alone_is_left"),
			Patches: []Patch{{
				File: "internal/quorum/lua/ask.lua",
				Old:  "or own and theirs == owner\n",
				New:  "or owner ~= '' and theirs == owner\n",
			}},
		},
		{
			Name:   "quorum: a hold is repaired over its remainder",
			Caught: inside("TestRepairOfRemainderSetsNothing"),
			Patches: []Patch{{
				File: "internal/quorum/lua/ask.lua",
				Old:  "if late then\n",
				New:  "if late and ARGV[7] ~= 'r' then\n",
			}},
		},
		{
			Name:   "quorum: a hold that was broken is given back before its holder has stopped",
			Caught: inside("TestRenewalOfBrokenHoldTellsByMajority"),
			Patches: []Patch{{
				File: "internal/quorum/renew.go",
				Old:  "broken >= 0 {",
				New:  "broken >= 0 && t.renewals[i].TTL == 0 {",
			}},
		},
		{
			Name:   "quorum: what was broken is said to be given back",
			Caught: inside("TestFreeOfBrokenHoldTellsByMajority"),
			Patches: []Patch{{
				File: "internal/quorum/lua/free.lua",
				Old:  "  return 'R' .. by\n",
				New:  "  return '1'\n",
			}},
		},
		{
			Name:   "quorum: a break counts at fewer than a majority",
			Caught: inside("TestBreakIsDoneByMajority"),
			Patches: []Patch{{
				File: "internal/quorum/break.go",
				Old:  "\tcase broken >= t.p.need:",
				New:  "\tcase broken > 0:",
			}},
		},
		{
			Name:   "quorum: what a break that failed has ended is not taken back",
			Caught: inside("TestBreakIsDoneByMajority"),
			Patches: []Patch{{
				File: "internal/quorum/break.go",
				Old:  "\ta.node.addCleanup(c)\n",
				New:  "",
			}},
		},
		{
			Name:   "quorum: a break takes any token",
			Caught: inside("TestBreakEndsHoldOfToken"),
			Patches: []Patch{{
				File: "internal/quorum/lua/break.lua",
				Old:  "  return ARGV[2] >= string.sub(value, 17, 32) and ARGV[2] <= string.sub(value, 33, 48)\n",
				New:  "  return true\n",
			}},
		},
		{
			Name:   "quorum: a break that arrives late takes effect",
			Caught: inside("TestBreakWithoutAnswersIsTakenBack"),
			Patches: []Patch{{
				File: "internal/quorum/lua/break.lua",
				Old:  "if now > ARGV[5] then\n",
				New:  "if false then\n",
			}},
		},
		{
			Name:   "quorum: taking one break back undoes another",
			Caught: inside("TestBreakTakenBackLeavesBreakThatMetIt"),
			Patches: []Patch{{
				File: "internal/quorum/lua/break.lua",
				Old:  "    if breaks ~= '' and not but_for(breaks, ARGV[3]) then\n",
				New:  "    if false then\n",
			}},
		},
		{
			Name:   "quorum: taking a break back holds again what was released",
			Caught: inside("TestReleaseOfBrokenHoldIsFinal"),
			Patches: []Patch{{
				File: "internal/quorum/lua/free.lua",
				Old:  "with_breaks(late, '')\n",
				New:  "late\n",
			}},
		},
		{
			Name:   "quorum: a look begins the memory of a node",
			Caught: inside("TestInspectChangesNothing"),
			Patches: []Patch{{
				File: "internal/quorum/scripts.go",
				Old:  "name != \"inspect\" && name != \"known\"}",
				New:  "true}",
			}},
		},
		{
			Name:   "quorum: a server counts at each of its nodes",
			Caught: inside("TestTwoNodesOfOneServerCountOnce"),
			Patches: []Patch{{
				File: "internal/quorum/node.go",
				Old:  "!f.ahead && f.same == nil\n",
				New:  "!f.ahead\n",
			}},
		},
		{
			Name:   "quorum: a server counts at each of its nodes in a census",
			Caught: inside("TestTwoNodesOfOneServerCountOnce"),
			Patches: []Patch{{
				File: "internal/quorum/adopt.go",
				Old:  " || a.facts.same != nil:",
				New:  ":",
			}},
		},
		{
			Name:   "quorum: a server counts at each of its nodes for who looks",
			Caught: inside("TestTwoNodesOfOneServerCountOnce"),
			Patches: []Patch{{
				File: "internal/quorum/inspect.go",
				Old:  "\tcase f.same != nil:\n\t\treturn false, p.whyNot(f)\n",
				New:  "",
			}},
		},
		{
			Name:   "quorum: one server at two nodes finds our own clock wrong",
			Caught: inside("TestOneServerAheadAtTwoNodesDoesNotCount"),
			Patches: []Patch{{
				File: "internal/quorum/clockcheck.go",
				Old:  "err != nil || f.same != nil {",
				New:  "err != nil {",
			}},
		},
		{
			Name:   "quorum: waiting seems to cure that nodes are one server",
			Caught: inside("TestOneServerIsNoMajority"),
			Patches: []Patch{{
				File: "internal/quorum/failure.go",
				Old:  "\t\t\treasons[protocol.SameServer]++\n",
				New:  "",
			}},
		},
		{
			Name:   "quorum: nodes that are one server are ready",
			Caught: inside("TestTwoNodesOfOneServerCountOnce"),
			Patches: []Patch{{
				File: "internal/quorum/probe.go",
				Old:  "\t\tif n.SameAs != \"\" {",
				New:  "\t\tif false {",
			}},
		},
		{
			Name:   "quorum: a server that does not tell its run id is known by nothing",
			Caught: inside("TestServerIsKnownByRunIDOrText"),
			Patches: []Patch{{
				File: "internal/quorum/lua/node.lua",
				Old:  "run ~= '' and run or ARGV[5])",
				New:  "run)",
			}},
		},
		{
			Name:   "quorum: a node stays another one",
			Caught: inside("TestNodeThatBecomesAnotherDoesNotCount"),
			Patches: []Patch{{
				File: "internal/quorum/node.go",
				Old:  "f.server != \"\" && f.server != n.server {",
				New:  "n.server == \"\" {",
			}},
		},
		{
			Name:   "quorum: two stores have one address",
			Caught: root("TestNewQuorumArguments"),
			Patches: []Patch{{
				File: "quorum.go",
				Old:  "\t\t\tcase haveSameAddress(stores[j], s):\n",
				New:  "\t\t\tcase false:\n",
			}},
		},
		{
			Name:   "quorum: rounds without a pace",
			Caught: inside("TestRoundsKeepPace"),
			Patches: []Patch{{
				File: "internal/quorum/resource.go",
				Old:  "\tif pace != nil && pace.Next().After(now.Add(d)) {",
				New:  "\tif false {",
			}},
		},
		{
			Name:   "quorum: a break waits for a silent master",
			Caught: clock("TestQuorumBreakWithSilentMasterIsQuick"),
			Patches: []Patch{{
				File: "operate.go",
				Old:  "\tif c.quorum == nil { // a quorum finds out",
				New:  "\tif true { // a quorum finds out",
			}},
		},
		{
			Name:   "quorum: a list goes on without its caller",
			Caught: inside("TestNamesEndWithContext"),
			Patches: []Patch{{
				File: "internal/wire/scan.go",
				Old:  "\tcase <-ctx.Done():\n\t\treturn answer, false\n",
				New:  "",
			}},
		},
	}
}
