package mutant

// quorumMutants are bugs of locks on independent masters.
func quorumMutants() []Mutant {
	quorum := func(name string) Check { return Check{Module: "proof", Package: "./quorum", Test: name, Tries: 3} }
	return []Mutant{
		{
			Name:   "quorum: no validity check",
			Caught: quorum("TestValidity"),
			Patches: []Patch{{
				File: "internal/engine/hold.go",
				Old:  "\th.trust = sent.Add(ttl - margin(ttl))\n",
				New:  "\th.trust = time.Now().Add(ttl - margin(ttl))\n",
			}},
		},
		{
			Name:   "quorum: birth mark ignored",
			Caught: quorum("TestForgotten"),
			Patches: []Patch{{
				File: "internal/quorum/node.go",
				Old:  "\tcounts := f.counts || n.p.config.Trust\n",
				New:  "\tcounts := true\n",
			}},
		},
		{
			Name:   "quorum: token not agreed on",
			Caught: quorum("TestTokens"),
			Patches: []Patch{{
				File: "internal/quorum/tally.go",
				Old:  "\tcase t.accepted >= t.need:\n",
				New:  "\tcase t.won >= t.need:\n",
			}, {
				File: "internal/quorum/tally.go",
				Old:  "\tcase t.won >= t.need:\n\t\tt.verdict = tokenRefused\n",
				New:  "",
			}},
		},
	}
}
