package mutant

import "github.com/holdfast-go/holdfast/proof/history"

// Mutants are the bugs that the workload must catch.
func Mutants() []Mutant {
	return []Mutant{
		{
			Name:  "double grant",
			Rules: []string{history.RuleOverlap},
			Patches: []Patch{{
				File: "internal/native/lua/ask.lua",
				Old:  "local turn = exclusive[1] and enters(ticket, payload)\n",
				New:  "local turn = true\n",
			}},
		},
		{
			Name:  "release without owner check",
			Rules: []string{history.RuleOverlap},
			Patches: []Patch{{
				File: "internal/native/lua/free.lua",
				Old:  "if not token then\n  return 0\nend\n",
				New:  "token = token or '0'\n",
			}},
		},
		{
			Name:  "trust from an unknown answer",
			Rules: []string{history.RuleOverlap},
			Patches: []Patch{{
				File: "internal/engine/watch.go",
				Old:  "\tcase r.Err != nil:\n\t\th.failure = r.Err\n",
				New:  "\tcase r.Err != nil:\n\t\th.confirm(sent, ttl)\n",
			}},
		},
		{
			Name:   "quorum: no validity check",
			Rules:  []string{history.RuleOverlap},
			Quorum: true,
			Patches: []Patch{{
				File: "internal/engine/hold.go",
				Old:  "\th.trust = sent.Add(ttl - margin(ttl))\n",
				New:  "\th.trust = time.Now().Add(ttl - margin(ttl))\n",
			}},
		},
		{
			Name:   "quorum: birth mark ignored",
			Rules:  []string{history.RuleOverlap},
			Quorum: true,
			Patches: []Patch{{
				File: "internal/quorum/node.go",
				Old:  "\tcounts := f.counts || n.p.config.Trust\n",
				New:  "\tcounts := true\n",
			}},
		},
		{
			Name:   "quorum: token not agreed on",
			Rules:  []string{history.RuleToken},
			Quorum: true,
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
